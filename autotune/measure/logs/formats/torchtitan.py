"""Lines of torchtitan.

Source: `torchtitan/components/metrics.py` in pytorch/torchtitan. `tps` (`wps` until 2025) are
tokens a second and device since the line before; `memory` is the peak that was reserved since
then. A line of validation begins in the same way. A warning of its own counts the retries of
the allocator.
"""

from __future__ import annotations

import re

from autotune.measure.logs.format import PatternFormat
from autotune.measure.logs.pattern import Field, LinePattern
from autotune.measure.logs.quantities import NUMBER

# A number is whole where another column follows it. At the end of a line a rate is known to be
# whole only by a whole group of thousands.
_NEXT = r"(?=\s+[a-z_]+:)"
_RATE = rf"(?:[\d,]+{_NEXT}|\d{{1,3}}(?:,\d{{3}})+(?=\s*$))"

TORCHTITAN = PatternFormat(
    "torchtitan",
    (
        LinePattern(
            start=re.compile(
                r"(?<!validate )(?<![a-z_])step:\s*(?P<step>\d+)(?:/\d+ = [\d.]+%)?"
                r"(?=\s+(?:loss|grad_norm|memory|tps|wps):)"
            ),
            fields=(
                Field(re.compile(r"\bloss:\s*"), re.compile(rf"(?P<loss>{NUMBER}){_NEXT}")),
                Field(
                    re.compile(r"\bgrad_norm:\s*"), re.compile(rf"(?P<grad_norm>{NUMBER}){_NEXT}")
                ),
                Field(re.compile(r"\bmemory:\s*"), re.compile(rf"(?P<peak_reserved>{NUMBER}GiB)")),
                Field(
                    re.compile(r"\b(?:tps|wps):\s*"),
                    re.compile(rf"(?P<tokens_per_s_per_device>{_RATE})"),
                ),
            ),
        ),
        LinePattern(start=re.compile(r"(?P<alloc_retries>\d+) \w+ memory allocation retries")),
    ),
)
