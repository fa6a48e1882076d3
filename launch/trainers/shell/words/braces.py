"""`{a,b}` and `{1..3}`: one word becomes several, before anything else is expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from launch.trainers.shell.grammar.syntax import Literal, Parameter, Part, Word

_Atom = Part | str
"""An unquoted character, or what braces pass over."""

_NUMBERS = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])")


def brace_expanded(word: Word) -> tuple[Word, ...]:
    """The words that a word's braces make of it."""
    if not any(isinstance(p, Literal) and not p.is_quoted and "{" in p.text for p in word.parts):
        return (word,)
    return tuple(replace(word, parts=_parts(atoms)) for atoms in _expanded(_atoms(word)))


def _atoms(word: Word) -> list[_Atom]:
    atoms: list[_Atom] = []
    for part in word.parts:
        if isinstance(part, Literal) and not part.is_quoted:
            atoms.extend(part.text)
        else:
            atoms.append(part)
    return atoms


def _parts(atoms: list[_Atom]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for atom in atoms:
        last = parts[-1] if parts else None
        if not isinstance(atom, str):
            parts.append(atom)
        elif isinstance(last, Parameter) and _continues(last, atom):
            # Braces come before names are read: `{$a,b}c` holds `$ac`.
            name = last.name + atom
            parts[-1] = replace(last, name=name, source=f"${name}")
        elif isinstance(last, Literal) and not last.is_quoted:
            parts[-1] = Literal(last.text + atom)
        else:
            parts.append(Literal(atom))
    return tuple(parts)


def _continues(parameter: Parameter, atom: str) -> bool:
    is_bare = not parameter.is_quoted and parameter.source == f"${parameter.name}"
    is_name = parameter.name.isidentifier() and (parameter.name + atom).isidentifier()
    return is_bare and is_name and atom.isascii()


def _expanded(atoms: list[_Atom]) -> Iterator[list[_Atom]]:
    for start, atom in enumerate(atoms):
        if atom != "{":
            continue
        end = _closing(atoms, start)
        choices = _choices(atoms[start + 1 : end]) if end > 0 else None
        if choices is None:
            continue
        for choice in choices:
            for inner in _expanded(choice):
                for rest in _expanded(atoms[end + 1 :]):
                    yield atoms[:start] + inner + rest
        return
    yield atoms


def _closing(atoms: list[_Atom], start: int) -> int:
    depth = 0
    for at in range(start, len(atoms)):
        depth += 1 if atoms[at] == "{" else -1 if atoms[at] == "}" else 0
        if depth == 0:
            return at
    return -1


def _choices(inside: list[_Atom]) -> list[list[_Atom]] | None:
    """What stands between the commas, or the range; None where it is neither."""
    choices: list[list[_Atom]] = [[]]
    depth = 0
    for atom in inside:
        depth += 1 if atom == "{" else -1 if atom == "}" else 0
        if atom == "," and depth == 0:
            choices.append([])
        else:
            choices[-1].append(atom)
    if len(choices) > 1:
        return choices
    text = "".join(atom for atom in inside if isinstance(atom, str))
    if len(text) < len(inside):
        return None
    if match := _NUMBERS.fullmatch(text):
        return [list(number) for number in _range(match)]
    if match := _LETTERS.fullmatch(text):
        first, last = ord(match[1]), ord(match[2])
        step = 1 if first <= last else -1
        return [[chr(code)] for code in range(first, last + step, step)]
    return None


def _range(match: re.Match[str]) -> list[str]:
    first, last, step = int(match[1]), int(match[2]), abs(int(match[3] or 1)) or 1
    padded = any(re.match(r"-?0\d", match[group]) for group in (1, 2))
    width = max(len(match[1]), len(match[2])) if padded else 0
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [f"{number:0{width}d}" for number in numbers]
