"""Expanded text -> words: where it is split, and which words depend on files."""

from __future__ import annotations

import re

from launch.trainers.shell.words.values import Text, Unknown

DEFAULT_SEPARATORS = " \t\n"

_GLOB = re.compile(r"[*?]")


class Fields:
    """Words as they grow. separators: the value of IFS. has_patterns: not under `set -f`."""

    def __init__(self, separators: str, line: int, has_patterns: bool = True) -> None:
        self.words: list[Text] = []
        self._separators = separators
        self._line = line
        self._has_patterns = has_patterns
        self._current: Text | None = None
        self._is_pattern = False

    def add(self, text: Text) -> None:
        """Quoted text: it makes a word even where it is empty."""
        self._current = (self._current or Text()) + text

    def add_plain(self, text: str) -> None:
        """Unquoted text of the script itself, which is not split."""
        self.add(Text.of(text))
        self._is_pattern |= _GLOB.search(text) is not None

    def add_split(self, text: Text, is_pattern: bool = True) -> None:
        """What an unquoted expansion yields. An unknown piece is taken for one without blanks.

        is_pattern: whether `*` and `?` in it mean files.
        """
        for piece in text.pieces:
            if isinstance(piece, Unknown):
                self.add(Text((piece,)))
            else:
                self._split(piece, is_pattern)

    def end_word(self) -> None:
        """The next text begins a new word."""
        if self._current is not None:
            self.words.append(self._settled(self._current))
        self._current, self._is_pattern = None, False

    def _split(self, text: str, is_pattern: bool) -> None:
        for token in self._tokens(text):
            if token[0] not in self._separators:
                self.add_plain(token) if is_pattern else self.add(Text.of(token))
                continue
            if token.strip(DEFAULT_SEPARATORS) and self._current is None:
                self._current = Text()
            self.end_word()

    def _tokens(self, text: str) -> list[str]:
        """Text in turns with what separates: blanks, or one other separator and blanks around."""
        if not self._separators:
            return [text]
        blanks = "".join(c for c in self._separators if c in DEFAULT_SEPARATORS)
        others = "".join(c for c in self._separators if c not in DEFAULT_SEPARATORS)
        blank = f"[{re.escape(blanks)}]" if blanks else "(?!)"
        forms = [f"{blank}+", f"[^{re.escape(self._separators)}]+"]
        if others:
            forms.insert(0, f"{blank}*[{re.escape(others)}]{blank}*")
        return re.findall("|".join(forms), text)

    def _settled(self, word: Text) -> Text:
        if not (self._is_pattern and self._has_patterns):
            return word
        why = "it depends on the files that are there; put it in quotes where it is no pattern"
        return Text((Unknown(str(word), self._line, why),))
