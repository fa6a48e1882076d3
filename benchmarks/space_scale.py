"""How long large spaces take to build, and how much memory.

Each space has 10^8 raw combinations or more. For every one a process of its own prints the
seconds, its peak resident memory, the combinations before the rules, the legal points, and how
many rows are kept:

    python benchmarks/space_scale.py            # all
    python benchmarks/space_scale.py products   # those whose name holds this
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from random import Random
from typing import Any

from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.scope import active_scope, is_active, is_legal

FACTS: dict[str, dict[str, Any]] = {
    "model": {"heads": 24, "layers": 36, "hidden": 2560, "batch": 64},
    "cluster": {"world_size": 64, "memory_gb": 60},
}
NAMES = "abcdefgh"
TEN = {name: {"choices": list(range(10)), "ordered": True} for name in NAMES}
POWERS = {name: {"choices": [2**n for n in range(10)], "ordered": True} for name in NAMES}


def space(parameters: dict[str, Any], *rules: str) -> dict[str, Any]:
    """A space file's content. The baseline is the first legal combination that chance finds."""
    return {"parameters": parameters, "constraints": [{"rule": rule} for rule in rules]}


def early() -> dict[str, Any]:
    """Each rule reads two or three parameters: most of it is gone after the first ones."""
    rules = ["a == b", "c <= d and d < c + 5", "(e + f) % 3 == 0", "g * h <= 30"]
    return space(TEN, *rules)


def products() -> dict[str, Any]:
    """A product over all parameters has to divide, and to reach, a number."""
    rule = " * ".join(NAMES)
    return space(POWERS, f"2 ** 22 % ({rule}) == 0", f"{rule} >= 2 ** 22")


def sums() -> dict[str, Any]:
    """A weighted sum over all parameters, and its remainder."""
    total = " + ".join(f"{weight} * {name}" for weight, name in enumerate(NAMES, 1))
    return space(TEN, f"({total}) % 50 == 0", f"{' + '.join(NAMES)} <= 50")


def floats() -> dict[str, Any]:
    """A memory model whose partial sums are all different."""
    weights = [0.937, 1.131, 0.777, 2.213, 1.717, 0.391, 3.011, 0.113]
    total = " + ".join(f"{w} * {name}" for w, name in zip(weights, NAMES, strict=True))
    return space(TEN, f"{total} + a * b / (c + 1.3) <= 21.7")


def positional() -> dict[str, Any]:
    """No two combinations of the first parameters leave the same memory."""
    total = "a"
    for name in NAMES[1:]:
        total = f"({total}) * 10 + {name}"
    return space(TEN, f"({total}) % 97 == 0")


def scrambled() -> dict[str, Any]:
    """Nothing merges and nothing can be seen before the last parameter."""
    total = "a + 3"
    for name in NAMES[1:]:
        total = f"(({total}) * 1103515245 + {name} + 12345) % 2147483648"
    return space(TEN, f"({total}) % 101 < 1")


def conditional() -> dict[str, Any]:
    """Parallel layouts, most parameters of which exist only with one another."""
    ladder = [1, 2, 4, 8, 16, 32, 64]
    parameters: dict[str, Any] = {
        "tp": {"choices": ladder},
        "pp": {"choices": ladder},
        "cp": {"choices": ladder},
        "cp_kind": {"choices": ["ulysses", "ring", "usp"], "when": "cp > 1"},
        "ulysses": {"choices": ladder, "when": "cp_kind == 'usp'"},
        "virtual": {"choices": [1, 2, 3, 4, 6], "when": "pp > 1"},
        "micro": {"choices": [1, 2, 4, 8, 16]},
        "chunk": {"choices": [0, 256, 512, 1024, 2048]},
        "recompute": {"choices": ["none", "selective", "full"]},
        "recompute_layers": {"choices": list(range(0, 37, 2)), "when": "recompute == 'full'"},
        "offload": {"choices": [0.0, 0.25, 0.5, 0.75, 1.0]},
        "overlap": {"choices": [True, False]},
        "bucket": {"choices": [25, 50, 100, 200, 400]},
        "order": {"choices": ["none", "bucketing", "reordering"]},
    }
    rules = [
        "cluster.world_size % (tp * pp * cp) == 0",
        "model.heads % tp == 0",
        "cp_kind == 'ring' or (model.heads // tp) % (ulysses if cp_kind == 'usp' else cp) == 0",
        "ulysses < cp and cp % ulysses == 0",
        "model.layers % (pp * virtual) == 0",
        "model.batch * tp * pp * cp % (cluster.world_size * micro) == 0",
        "recompute_layers <= model.layers // pp",
        "offload == 0 or recompute != 'full'",
        "micro * model.hidden * (1 - 0.5 * offload) / (tp * cp) <= 4000",
    ]
    return space(parameters, *rules)


def many_rules() -> dict[str, Any]:
    """Forty rules that read all parameters, each of which excludes little."""
    rules = []
    for number in range(40):
        weights = [(number * 7 + k * k * 5 + 3) % 11 + 1 for k in range(8)]
        total = " + ".join(f"{w} * {name}" for w, name in zip(weights, NAMES, strict=True))
        rules.append(f"({total}) % 9 != {number % 9}")
    return space(TEN, *rules)


def few_hard_rules() -> dict[str, Any]:
    """Three rules of each of which every combination leaves another memory."""
    rules = []
    for number, modulus in enumerate([5, 7, 3]):
        total = "a"
        for name in NAMES[1:]:
            total = f"({total}) * {11 + 2 * number} + {name}"
        rules.append(f"({total}) % {modulus} == 0")
    return space(TEN, *rules)


def binary() -> dict[str, Any]:
    """27 switches, all of which a rule reads, with other memories for all combinations."""
    names = [f"s{n}" for n in range(27)]
    parameters = {name: {"choices": [False, True]} for name in names}
    total = " + ".join(f"{2**n + 7 * n} * {name}" for n, name in enumerate(names))
    return space(parameters, f"({total}) % 131 == 5")


def wide() -> dict[str, Any]:
    """Two parameters of 10,000 choices."""
    parameters = {name: {"choices": list(range(1, 10_001))} for name in "ab"}
    return space(parameters, "a * b % 101 == 7")


def huge() -> dict[str, Any]:
    """10^16 raw combinations, a tenth of a per mille legal: counted, not listed."""
    names = [f"p{n}" for n in range(16)]
    parameters = {name: {"choices": list(range(10))} for name in names}
    return space(parameters, f"({' + '.join(names)}) % 50 == 0", "p0 * p1 == p2 * p3")


def huge_floats() -> dict[str, Any]:
    """10^16 raw combinations under a memory model that cannot be merged: sampled."""
    names = [f"p{n}" for n in range(16)]
    parameters = {name: {"choices": list(range(10))} for name in names}
    total = " + ".join(f"{0.1 + (7 * n % 16) / 9.7} * {name}" for n, name in enumerate(names))
    return space(parameters, f"{total} <= 45.5", "p0 * p1 == p2 * p3", "p15 % 2 == p14 % 2")


SPACES = [
    early,
    products,
    sums,
    floats,
    positional,
    scrambled,
    conditional,
    many_rules,
    few_hard_rules,
    binary,
    wide,
    huge,
    huge_floats,
]


def legal_values(definition: SpaceDefinition) -> dict[str, Any]:
    """A legal combination by trying random ones."""
    random = Random(1)
    while True:
        values: dict[str, Any] = {}
        for parameter in definition.parameters:
            if is_active(parameter, active_scope(definition, values)):
                values[parameter.name] = random.choice(parameter.choices)
        if is_legal(definition, values):
            return values


def measure(name: str) -> None:
    """Builds one space and prints its line."""
    content = globals()[name]()
    content["baseline"] = legal_values(SpaceDefinition.parse(content, FACTS))
    definition = SpaceDefinition.parse(content, FACTS)
    start, cpu = time.perf_counter(), time.process_time()
    built = LegalSpace.build(definition)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    alone = sum(exclusion.alone is None for exclusion in built.exclusions)
    estimated = sum(exclusion.estimated for exclusion in built.exclusions)
    print(
        f"{name:<15} {seconds:6.2f} s ({cpu:5.2f} s of CPU) {peak:5.2f} GiB  "
        f"{built.combinations:>22,} combinations  "
        f"{built.size_text:>21} legal  {len(built.codes):>9,} rows  "
        f"{len(built.exclusions)} rules, {estimated} estimated, {alone} without `alone`",
        flush=True,
    )


def main() -> None:
    """One process a space, so that each has its own peak."""
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2])
        return
    wanted = sys.argv[1:] or [""]
    for name in (function.__name__ for function in SPACES):
        if any(part in name for part in wanted):
            subprocess.run([sys.executable, __file__, "--one", name], check=True)


if __name__ == "__main__":
    main()
