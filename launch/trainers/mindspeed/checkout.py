"""The user's checkout of MindSpeed-MM: whether it is one, and the one that the rules are for."""

from __future__ import annotations

import re

from autotune.errors import UserError
from launch.trainers.sources import Sources

ANY = "any"
KNOWN = "57069cd5"
"""The commit whose rules the trainers know, as `search_spaces/trainer/` gives it."""

# Seven digits are the fewest that git itself abbreviates to.
_COMMIT = re.compile(r"[0-9a-fA-F]{7,40}")


def require_checkout(sources: Sources, program: str, commit: str | None) -> None:
    """Raises UserError where there is no such program, or another commit than was given.

    program: path of the training program in the checkout. commit: the first digits of the
    commit that is to be there; `any`, or None where nothing is said, takes each.
    """
    if not sources.is_kept:
        require_commit(commit)
    root = sources.root
    if not sources.has(program):
        raise UserError(
            f"trainer.root={root} holds no {program}: it is no checkout of MindSpeed-MM, or of "
            "another version; give the folder that `git clone` made, as trainer.root=DIR"
        )
    if commit is None or commit == ANY:
        return
    found = sources.commit()
    why = f"the rules are for {KNOWN}"
    if not commit.lower().startswith(KNOWN):
        why = f"trainer.commit={commit} ({why})"
    if found is None:
        raise UserError(
            f"trainer.root={root} is no git work tree, so its version is not known; {why}. If it "
            "is that or a version like it, give trainer.commit=any"
        )
    if not found.startswith(commit.lower()):
        raise UserError(
            f"trainer.root={root} is at commit {found[:12]}, {why}; type git -C {root} checkout "
            f"{commit}, or accept yours with trainer.commit={found[:12]}"
        )


def require_commit(commit: str | None) -> None:
    """Raises UserError for a text that names no commit."""
    if commit is None or commit == ANY or _COMMIT.fullmatch(commit):
        return
    raise UserError(
        f"trainer.commit={commit!r} is no commit: give 7 to 40 hexadecimal digits of it, such as "
        f"trainer.commit={KNOWN}, whose rules are known, or trainer.commit=any to take each"
    )
