"""Whether MindSpeed-MM takes what the search calls legal, and the search refuses what it refuses.

For a model of the library, random legal points: the files and arguments of their trials are given
to MindSpeed-MM's own classes and parsers. Then random points of wider choices, legal or not: each
that MindSpeed-MM refuses must be illegal here. Run outside CI, against a checkout at the commit of
the rules; `--oracle` is a folder with `accept_native.py` and `accept_megatron.py`, which read JSON
lines and answer with JSON lines (docs/mindspeed_mm.md says what they do).

    python benchmarks/mindspeed_acceptance.py qwen3_5_4b qwen2_5_vl_7b --root DIR --oracle /tmp/mm
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
from autotune.ports import MeasurementPlan, RankProgram
from autotune.space.expression import InapplicableError
from launch.trainers.mindspeed.megatron_models import PROGRAMS

_PLAN = MeasurementPlan(3, 8)
_NATIVE = "mindspeed_fsdp2"
_DEGREES = (1, 2, 3, 4, 7, 8, 16)
_WIDE: Mapping[str, Sequence[Any]] = {
    "sp_degree": (1, 2, 3, 4, 5, 6, 8, 12, 16, 32),
    "sp_algorithm": ("ulysses", "ring", "usp"),
    "ulysses_degree": (1, 2, 3, 4, 8),
    "micro_batch_size": (0, 1, 2, 3, 4, 8),
    "fsdp_size": ("auto", 1, 2, 3, 4, 6, 8, 16),
    "expert_parallel_size": (1, 2, 3, 4, 8, 16, 32),
    "loss_chunk": ("none", "static", "dynamic"),
    "loss_chunk_size": (1, 512, 1024),
    "activation_offload": (False, True),
}
_WIDE_NATIVE: Mapping[str, Sequence[Any]] = {"recompute": (False, True)}
_WIDE_MEGATRON: Mapping[str, Sequence[Any]] = {
    "tensor_parallel_size": _DEGREES,
    "pipeline_parallel_size": _DEGREES,
    "virtual_pipeline_size": (1, 2, 3),
    "ring_window": (1, 2, 3, 4),
    "send_recv_overlap": (False, True),
    "sequence_parallel": (False, True),
    "distributed_optimizer": (False, True),
    "overlap_grad_reduce": (False, True),
    "overlap_param_gather": (False, True),
    "recompute": ("none", "full", "selective"),
    "recompute_method": ("block", "uniform"),
    "recompute_layers": (0, 1, 3, 28),
    "hetero_parallel": (False, True),
    "encoder_micro_batch_scale": (1, 2, 3, 8),
    "image_encoder_tensor_parallel_size": _DEGREES,
    "image_encoder_sp_degree": _DEGREES,
    "audio_encoder_tensor_parallel_size": _DEGREES,
    "audio_encoder_sp_degree": (*_DEGREES, 5),
    "swap_attention": (False, True),
    "layerzero": (False, True),
    "bucket_order": ("none", "bucketing", "reordering"),
}


@dataclass(frozen=True)
class Answer:
    """What MindSpeed-MM says of one point, and how often it was asked."""

    point: Mapping[str, Any]
    accepted: bool
    error: str


def ask(oracle: Path, problem: Problem, points: Sequence[Mapping[str, Any]]) -> Iterator[Answer]:
    """The oracle's answers, in order."""
    is_native = problem.trainer.name == _NATIVE
    script = "accept_native.py" if is_native else "accept_megatron.py"
    with tempfile.TemporaryDirectory() as folder:
        requests = []
        for number, point in enumerate(points):
            trial = Path(folder) / str(number)
            program = problem.trainer.trial_program(point, _PLAN, trial)
            for name, text in program.files.items():
                path = trial / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            requests.append(_request(problem, program, is_native))
        done = subprocess.run(
            [str(oracle / "venv/bin/python"), str(oracle / script)],
            input="".join(json.dumps(request) + "\n" for request in requests),
            capture_output=True,
            text=True,
            check=True,
        )
    for point, line in zip(points, done.stdout.splitlines(), strict=True):
        answer = json.loads(line)
        yield Answer(point, bool(answer["accepted"]), str(answer.get("error") or ""))


def _request(problem: Problem, program: RankProgram, is_native: bool) -> dict[str, Any]:
    """What the oracle is asked: the YAML, or what follows the training program's name."""
    world_size = problem.config.cluster.placement.world_size
    if is_native:
        return {"yaml": program.argv[-1], "world_size": world_size}
    start = next(at for at, word in enumerate(program.argv) if Path(word).name in PROGRAMS)
    return {
        "argv": program.argv[start + 1 :],
        "world_size": world_size,
        "env": {name: value for name, value in program.env.items() if name.startswith("CUDA")},
    }


def is_legal(problem: Problem, values: Mapping[str, Any]) -> bool:
    """Whether a trainer takes a value of every parameter, and its rules hold for them."""
    trainer = problem.trainer
    try:
        trainer.check({name: [value] for name, value in values.items()})
    except UserError:
        return False
    facts = {**problem.config.facts, "model": {**problem.config.model.dims, **trainer.dims}}
    scope: dict[str, Any] = {**facts, **trainer.fixed, **values}
    for rule in trainer.rules:
        try:
            if not rule.expression.evaluate(scope):
                return False
        except InapplicableError:
            continue
        except UserError:  # divided by a size of 0
            return False
    return True


def wide_points(problem: Problem, count: int, seed: int, share: float) -> list[dict[str, Any]]:
    """Random values of a share of the trainer's parameters, the others as the base has them."""
    draw = random.Random(seed)
    fixed = problem.trainer.fixed
    own = _WIDE_NATIVE if problem.trainer.name == _NATIVE else _WIDE_MEGATRON
    varied = {p.name: p.choices for p in problem.space.parameters}
    wide = {**varied, **_WIDE, **own}
    known = [name for name in wide if name in fixed and _takes(problem, name, wide[name])]
    points = []
    for _ in range(count):
        changed = [name for name in known if draw.random() < share]
        points.append({name: draw.choice(wide[name]) for name in changed})
    return points


def _takes(problem: Problem, name: str, values: Sequence[Any]) -> bool:
    """Whether the trainer has the parameter, and takes at least one of the values."""
    for value in values:
        try:
            problem.trainer.check({name: [value]})
        except UserError:
            continue
        return True
    return False


def main() -> None:
    """Asks and reports; exits with 1 where the two disagree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--root", required=True)
    parser.add_argument("--oracle", type=Path, required=True)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--share", type=float, default=0.5, help="of parameters that vary widely")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    disagree = 0
    for model in options.models:
        words = (
            *(f"model={model}", f"trainer.root={options.root}", "trainer.commit=any"),
            "cluster.device_memory=64GiB",
        )
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
    drawn = wide_points(problem, options.points, options.seed, options.share)
    wide = list(ask(options.oracle, problem, drawn))
    beyond = [a for a in wide if not a.accepted]
    missed = [a for a in beyond if is_legal(problem, a.point)]
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
