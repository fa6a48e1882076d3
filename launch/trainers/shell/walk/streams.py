"""What commands read."""

from __future__ import annotations

from launch.trainers.shell.words.values import Text


class Stream:
    """A text that is read from its start to its end, once."""

    def __init__(self, text: Text) -> None:
        self._rest = text

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return not self._rest

    def read(self) -> Text:
        """All that is left."""
        text, self._rest = self._rest, Text()
        return text

    def read_line(self) -> Text:
        """The next line without its end; all that is left where pieces are unknown."""
        if not self._rest.is_known:
            return self.read()
        line, _, rest = str(self._rest).partition("\n")
        self._rest = Text.of(rest)
        return Text.of(line)
