"""The user's checkout of MindSpeed-MM: whether it is one, and the one that the rules are for."""

from __future__ import annotations

from autotune.errors import UserError
from launch.trainers.sources import Sources

ANY = "any"


def require_checkout(sources: Sources, program: str, commit: str | None) -> None:
    """Raises UserError where there is no such program, or another commit than was given.

    program: path of the training program in the checkout. commit: the first digits of the
    commit whose rules the trainer knows, or `any`.
    """
    root = sources.root
    if not sources.has(program):
        raise UserError(
            f"trainer.root={root} holds no {program}: it is no checkout of MindSpeed-MM, or of "
            "another version; give the folder that `git clone` made, as trainer.root=DIR"
        )
    if commit is None or commit == ANY:
        return
    found = sources.commit()
    if found is None:
        raise UserError(
            f"trainer.root={root} is no git work tree, so its version is not known; the rules are "
            f"for commit {commit}. If it is that or a version like it, give trainer.commit=any"
        )
    if not found.startswith(commit):
        raise UserError(
            f"trainer.root={root} is at commit {found[:12]}, the rules are for {commit}; type "
            f"git -C {root} checkout {commit}, or accept yours with trainer.commit={found[:12]}"
        )
