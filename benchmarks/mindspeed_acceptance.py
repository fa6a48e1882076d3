"""Whether MindSpeed-MM takes what the search calls legal, and the search refuses what it refuses.

For a model of the library, random legal points: the files of their trials are given to
MindSpeed-MM's own classes and parsers. Then random points of wider choices, legal or not: each
that MindSpeed-MM refuses must be illegal here. Run outside CI, against a checkout at the commit of
the rules; `--oracle` is a folder with `accept_native.py` and `accept_megatron.py`, which read JSON
lines and answer with JSON lines (docs/mindspeed_mm.md says what they do).

    python benchmarks/mindspeed_acceptance.py qwen3_5_4b --root ~/MindSpeed-MM --oracle /tmp/mm
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.cli.wiring import Problem, compose_problem
from autotune.errors import UserError
from autotune.ports import MeasurementPlan
from autotune.space.expression import InapplicableError

_PLAN = MeasurementPlan(3, 8)
_WIDE: Mapping[str, Sequence[Any]] = {
    "sp_degree": (1, 2, 3, 4, 5, 6, 8, 12, 16, 32),
    "sp_algorithm": ("ulysses", "ring", "usp"),
    "ulysses_degree": (1, 2, 3, 4, 8),
    "micro_batch_size": (0, 1, 2, 3, 4, 8),
    "fsdp_size": ("auto", 1, 2, 3, 4, 6, 8, 16),
    "expert_parallel_size": (1, 2, 3, 4, 8, 16, 32),
    "loss_chunk": ("none", "static", "dynamic"),
    "loss_chunk_size": (1, 512, 1024),
    "recompute": (False, True),
    "activation_offload": (False, True),
}


@dataclass(frozen=True)
class Answer:
    """What MindSpeed-MM says of one point, and how often it was asked."""

    point: Mapping[str, Any]
    accepted: bool
    error: str


def ask(oracle: Path, problem: Problem, points: Sequence[Mapping[str, Any]]) -> Iterator[Answer]:
    """The oracle's answers, in order."""
    world_size = problem.config.cluster.placement.world_size
    with tempfile.TemporaryDirectory() as folder:
        requests = []
        for number, point in enumerate(points):
            trial = Path(folder) / str(number)
            program = problem.trainer.trial_program(point, _PLAN, trial)
            for name, text in program.files.items():
                path = trial / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            requests.append({"yaml": program.argv[-1], "world_size": world_size})
        done = subprocess.run(
            [str(oracle / "venv/bin/python"), str(oracle / "accept_native.py")],
            input="".join(json.dumps(request) + "\n" for request in requests),
            capture_output=True,
            text=True,
            check=True,
        )
    for point, line in zip(points, done.stdout.splitlines(), strict=True):
        answer = json.loads(line)
        yield Answer(point, bool(answer["accepted"]), str(answer.get("error") or ""))


def is_legal(problem: Problem, values: Mapping[str, Any]) -> bool:
    """Whether a trainer's rules hold for a value of every parameter."""
    trainer = problem.trainer
    facts = {**problem.config.facts, "model": {**problem.config.model.dims, **trainer.dims}}
    scope = {**facts, **trainer.fixed, **values}
    for rule in trainer.rules:
        try:
            if not rule.expression.evaluate(scope):
                return False
        except InapplicableError:
            continue
        except UserError:  # divided by a size of 0
            return False
    return True


def wide_points(problem: Problem, count: int, seed: int) -> list[dict[str, Any]]:
    """Random values of parameters that the trainer has, half of them the base's."""
    draw = random.Random(seed)
    fixed = problem.trainer.fixed
    known = [name for name in _WIDE if name in fixed]
    points = []
    for _ in range(count):
        changed = [name for name in known if draw.random() < 0.5]
        points.append({name: draw.choice(_WIDE[name]) for name in changed})
    return points


def main() -> None:
    """Asks and reports; exits with 1 where the two disagree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--root", required=True)
    parser.add_argument("--oracle", type=Path, required=True)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    disagree = 0
    for model in options.models:
        words = (f"model={model}", f"trainer.root={options.root}", "trainer.commit=any")
        problem = compose_problem(words, None)
        disagree += report(problem, options)
    sys.exit(1 if disagree else 0)


def report(problem: Problem, options: argparse.Namespace) -> int:
    """Prints the figures of a model; how many points the two disagree on."""
    space = problem.space
    draw = random.Random(options.seed)
    chosen = draw.sample(range(len(space.points)), min(options.points, len(space.points)))
    legal = list(ask(options.oracle, problem, [space.points[row] for row in chosen]))
    refused = [answer for answer in legal if not answer.accepted]
    wide = list(ask(options.oracle, problem, wide_points(problem, options.points, options.seed)))
    beyond = [a for a in wide if not a.accepted]
    missed = [a for a in beyond if is_legal(problem, {**problem.trainer.fixed, **a.point})]
    print(
        f"{problem.config.model.name}: {len(legal) - len(refused)} of {len(legal)} legal points "
        f"accepted; of {len(wide)} wide points MindSpeed-MM refuses {len(beyond)}, of which "
        f"{len(beyond) - len(missed)} are illegal here"
    )
    for error, count in Counter(a.error[:110] for a in beyond).most_common(12):
        print(f"    refused {count} x: {error}")
    for answer in [*refused, *missed][:8]:
        print(f"    DISAGREE {dict(answer.point)}: {answer.error[:160]}")
    return len(refused) + len(missed)


if __name__ == "__main__":
    main()
