"""What a shell script consists of, as the parser hands it over.

After the grammar in POSIX.1-2017, Shell Command Language, 2.10, and the GNU Bash manual for what
bash adds. Lines are counted from 1. `source` is always the text as it stands in the script.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Literal:
    """Plain text. is_quoted: it is neither split, nor matched against files, nor a keyword."""

    text: str
    is_quoted: bool = False


@dataclass(frozen=True)
class Parameter:
    """`$name` or `${...}`.

    prefix: `#` for a length, `!` for what the value names, else empty. index: of `${name[index]}`.
    operator: such as `:-`, `#`, `//`, `:`; arguments: what follows it, one word, or two for `/`
    and `:`.
    """

    name: str
    source: str
    line: int
    is_quoted: bool = False
    prefix: str = ""
    index: Word | None = None
    operator: str = ""
    arguments: tuple[Word, ...] = ()


@dataclass(frozen=True)
class Substitution:
    """`$(...)` or backquotes."""

    body: tuple[Statement, ...]
    source: str
    line: int
    is_quoted: bool = False


@dataclass(frozen=True)
class ArithmeticExpansion:
    """`$((...))`."""

    expression: Word
    source: str
    line: int
    is_quoted: bool = False


@dataclass(frozen=True)
class ProcessSubstitution:
    """`<(...)` or `>(...)`."""

    body: tuple[Statement, ...]
    source: str
    line: int
    is_quoted: bool = False


Part = Literal | Parameter | Substitution | ArithmeticExpansion | ProcessSubstitution


@dataclass(frozen=True)
class Word:
    """One word before its expansion."""

    parts: tuple[Part, ...]
    source: str
    line: int

    @property
    def plain(self) -> str | None:
        """The text where it is unquoted and without expansions: what may be a keyword."""
        match self.parts:
            case (Literal(text, is_quoted=False),):
                return text
        return None


@dataclass(frozen=True)
class Element:
    """One word between the brackets of `name=(...)`. key: of `[key]=word`."""

    key: Word | None
    value: Word


@dataclass(frozen=True)
class Assignment:
    """`name=value`, `name[index]=value`, `name=(...)`, with `+=` too."""

    name: str
    value: Word | tuple[Element, ...]
    source: str
    line: int
    index: Word | None = None
    is_appended: bool = False


@dataclass(frozen=True)
class Redirection:
    """`2> file` and the like. descriptor: the number before it, empty where there is none.

    target: the word after it; for a here-document its text.
    """

    operator: str
    descriptor: str
    target: Word


@dataclass(frozen=True)
class Simple:
    """A command with its arguments; assignments alone are one too."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]
    redirections: tuple[Redirection, ...]
    source: str
    line: int


@dataclass(frozen=True)
class Pipeline:
    """Commands whose output goes into the next. A single one is a pipeline where it is negated."""

    commands: tuple[Statement, ...]
    is_negated: bool
    source: str
    line: int


@dataclass(frozen=True)
class Chain:
    """`first && second || third`. rest: pairs of operator and command."""

    first: Statement
    rest: tuple[tuple[str, Statement], ...]
    source: str
    line: int


@dataclass(frozen=True)
class Group:
    """`{ ...; }` or `( ... )`, or any compound command with redirections."""

    body: tuple[Statement, ...]
    is_subshell: bool
    redirections: tuple[Redirection, ...]
    source: str
    line: int


@dataclass(frozen=True)
class If:
    """branches: pairs of condition and body. otherwise: what follows `else`."""

    branches: tuple[tuple[tuple[Statement, ...], tuple[Statement, ...]], ...]
    otherwise: tuple[Statement, ...]
    source: str
    line: int


@dataclass(frozen=True)
class While:
    """`while`, or `until`."""

    condition: tuple[Statement, ...]
    body: tuple[Statement, ...]
    is_until: bool
    source: str
    line: int


@dataclass(frozen=True)
class For:
    """`for name in words`. words: None for the arguments."""

    name: str
    words: tuple[Word, ...] | None
    body: tuple[Statement, ...]
    source: str
    line: int


@dataclass(frozen=True)
class CountingFor:
    """`for ((start; condition; step))`."""

    start: Word
    condition: Word
    step: Word
    body: tuple[Statement, ...]
    source: str
    line: int


@dataclass(frozen=True)
class Branch:
    """One item of `case`. ending: `;;`, `;&` or `;;&`."""

    patterns: tuple[Word, ...]
    body: tuple[Statement, ...]
    ending: str


@dataclass(frozen=True)
class Case:
    """`case subject in ... esac`."""

    subject: Word
    branches: tuple[Branch, ...]
    source: str
    line: int


@dataclass(frozen=True)
class Function:
    """`name() body`."""

    name: str
    body: Statement
    source: str
    line: int


@dataclass(frozen=True)
class Arithmetic:
    """`((...))`."""

    expression: Word
    source: str
    line: int


@dataclass(frozen=True)
class Condition:
    """`[[ ... ]]`. tokens: its words and operators in order."""

    tokens: tuple[Word | str, ...]
    source: str
    line: int


Statement = (
    Simple
    | Pipeline
    | Chain
    | Group
    | If
    | While
    | For
    | CountingFor
    | Case
    | Function
    | Arithmetic
    | Condition
)
