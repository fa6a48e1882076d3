"""From the command line to a verb, and from errors to exit codes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from autotune.cli.arguments import Invocation, parse_arguments
from autotune.cli.interrupt import interrupt_on_sigterm
from autotune.errors import ExitCode, UserError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code (docs/design.md, contract)."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        with interrupt_on_sigterm():
            return run_verb(parse_arguments(sys.argv[1:] if argv is None else argv))
    except UserError as error:
        print_error(str(error))
        return error.exit_code
    except OSError as error:  # a folder that cannot be written, a disk that is full
        print_error(f"{error.filename or 'the system'}: {error.strerror or error}")
        return ExitCode.WRONG_INPUT
    except KeyboardInterrupt:
        print_error("stopped by the user")
        return ExitCode.STOPPED


def print_error(message: str) -> None:
    """One message on stderr."""
    Console(stderr=True, soft_wrap=True, highlight=False).print(
        f"[bold red]autotune:[/] {escape(message)}"
    )


def run_verb(invocation: Invocation) -> int:
    """Runs the verb. Each is imported when it is asked for: `check` must not wait for Optuna."""
    match invocation.verb:
        case "check":
            from autotune.cli.check import check as verb
        case "status":
            from autotune.cli.status import status as verb
        case "export":
            from autotune.cli.results import export as verb
        case "report":
            from autotune.cli.results import report as verb
        case "analyze":
            from autotune.cli.analyze import analyze as verb
        case "profile":
            from autotune.cli.profile import profile as verb
        case "replay":
            from autotune.cli.replay import replay as verb
        case _:
            from autotune.cli.sweep import sweep as verb
    return verb(invocation)
