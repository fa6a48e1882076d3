"""Analyses as tables, with the unit in the name of each column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from autotune.analyze.compare import Comparison, Difference
from autotune.analyze.findings.advise import advise
from autotune.analyze.findings.memory import component_peaks
from autotune.analyze.profile import CollectiveTime, LinkTime, Profile, StepTime
from autotune.analyze.ranks import RankVerdict, judge_ranks
from autotune.analyze.summary import ProfileSet, own_us

Row = dict[str, Any]

# What is said of a table that stays empty.
WHY_EMPTY = {
    "steps": "no step is marked in the profiles",
    "phases": "the phases are not known apart",
    "operators": "no operator was recorded",
    "communication": "no communication was recorded",
    "links": "no traffic between single ranks was recorded",
    "memory": "memory was not recorded",
    "memory_peaks": "memory was not recorded",
    "gaps": "no gap was found",
    "ranks": "no step is marked in the profiles",
    "advice": "there is nothing to advise on",
    "missing": "nothing is missing",
}
WHY_NO_DIFFERENCE = {
    "compare_steps": "no step is marked in both",
    "compare_operators": "no operator was recorded",
    "compare_communication": "no communication was recorded",
    "compare_memory": "memory was not recorded",
}


def tables(sets: Sequence[ProfileSet]) -> dict[str, pd.DataFrame]:
    """Every table by its name (`WHY_EMPTY`); those without data are empty.

    Columns `capture` and `rank` say whose a row is; a capture is one set of ranks. Times and
    sizes are as recorded, over all that was profiled, but for `ranks`: the mean step.
    """
    rows: dict[str, list[Row]] = {name: [] for name in WHY_EMPTY}
    for profiles in sets:
        verdict = judge_ranks(profiles)
        capture = {"capture": profiles.name}
        for profile, label in zip(profiles.profiles, profiles.labels, strict=True):
            who = {**capture, "rank": label if profile.rank is None else profile.rank}
            for name, made in _of_profile(profile).items():
                rows[name] += [{**who, **row} for row in made]
        rows["ranks"] += [{**capture, **row} for row in _ranks(verdict)]
        rows["advice"] += [{**capture, **row} for row in _advice(profiles, verdict)]
    return {name: pd.DataFrame(made, dtype=object) for name, made in rows.items()}


def _of_profile(profile: Profile) -> dict[str, Iterable[Row]]:
    memory = profile.memory
    return {
        "steps": map(_step, profile.steps),
        "phases": (row for step in profile.steps for row in _phases(step)),
        "operators": _operators(profile),
        "communication": map(_collective, profile.collectives),
        "links": map(_link, profile.links),
        "memory": [
            {
                "time_us": point.time_us,
                "component": point.component,
                "allocated_bytes": point.allocated_bytes,
                "reserved_bytes": point.reserved_bytes,
            }
            for point in (memory.points if memory else ())
        ],
        "memory_peaks": _peaks(profile),
        "gaps": [
            {
                "step": gap.step,
                "cause": gap.cause,
                "start_us": gap.start_us,
                "duration_us": gap.duration_us,
                "before": gap.before,
                "after": gap.after,
            }
            for gap in profile.gaps
        ],
        "missing": _missing(profile),
    }


def _step(step: StepTime) -> Row:
    return {
        "step": step.step,
        "total_us": step.total_us,
        "computing_us": step.computing_us,
        "communication_not_overlapped_us": step.not_overlapped_us,
        "overlapped_us": step.overlapped_us,
        "communication_us": step.communication_us,
        "free_us": step.free_us,
        "stage_us": step.stage_us,
        "bubble_us": step.bubble_us,
        "communication_not_overlapped_without_receive_us": step.not_overlapped_without_bubble_us,
        "preparing_us": step.preparing_us,
        "host_us": step.host_us,
    }


def _phases(step: StepTime) -> Iterator[Row]:
    phases = step.phases_us or {}
    whole = sum(phases.values())
    for name, part in phases.items():
        share = part / whole if whole else None
        yield {"step": step.step, "phase": name, "total_us": part, "share": share}


def _operators(profile: Profile) -> Iterator[Row]:
    whole = {
        where: sum(own_us(o) for o in profile.operators if o.where == where)
        for where in {o.where for o in profile.operators}
    }
    for operator in sorted(profile.operators, key=lambda o: -own_us(o)):
        all_there = whole[operator.where]
        yield {
            "name": operator.name,
            "where": operator.where,
            "count": operator.count,
            "total_us": operator.total_us,
            "self_us": operator.self_us,
            "longest_us": operator.longest_us,
            "share_of_where": own_us(operator) / all_there if all_there else None,
        }


def _collective(collective: CollectiveTime) -> Row:
    return {
        "step": collective.step,
        "operation": collective.operation,
        "group": collective.group,
        "count": collective.count,
        "elapsed_us": collective.elapsed_us,
        "transit_us": collective.transit_us,
        "wait_us": collective.wait_us,
        "synchronization_us": collective.synchronization_us,
        "idle_us": collective.idle_us,
        "overlapped_us": collective.overlapped_us,
        "size_bytes": collective.size_bytes,
        "bandwidth_gb_per_s": collective.bandwidth_gb_per_s,
    }


def _link(link: LinkTime) -> Row:
    return {
        "source_rank": link.source,
        "target_rank": link.target,
        "transport": link.transport,
        "group": link.group,
        "size_bytes": link.size_bytes,
        "transit_us": link.transit_us,
        "bandwidth_gb_per_s": link.bandwidth_gb_per_s,
    }


def _peaks(profile: Profile) -> Iterator[Row]:
    """The components' peaks, then what was live at the allocator's."""
    if profile.memory is None:
        return
    for peak in component_peaks(profile.memory):
        yield {
            "what": "component",
            "name": peak.component,
            "size_bytes": peak.bytes,
            "allocated_bytes": peak.allocated_bytes,
            "reserved_bytes": peak.reserved_bytes,
        }
    for holder in profile.memory.holders:
        yield {
            "what": "held at the peak",
            "name": holder.by,
            "size_bytes": holder.size_bytes,
            "allocated_at_us": holder.allocated_at_us,
            "released_at_us": holder.released_at_us,
        }


def _missing(profile: Profile) -> Iterator[Row]:
    for name in profile.cut:
        yield {"what": name, "why": "the file is cut off; what came before the cut was read"}
    for each in profile.missing:
        yield {"what": each.what, "why": each.why}


def _ranks(verdict: RankVerdict) -> Iterator[Row]:
    slow = {found.label: found for found in verdict.slow}
    for work in verdict.works:
        found = slow.get(work.label)
        yield {
            "rank": work.label,
            "own_work_us": work.own_us,
            "computing_us": work.computing_us,
            "loading_us": work.loading_us,
            "waits_for_host_us": work.host_us,
            "communication_not_overlapped_us": work.waiting_us,
            "step_us": work.step_us,
            "slow": found is not None,
            "cost_us": None if found is None else found.cost_us,
            "cause": None if found is None else found.cause,
        }


def _advice(profiles: ProfileSet, verdict: RankVerdict) -> Iterator[Row]:
    for place, advice in enumerate(advise(profiles, verdict), start=1):
        yield {
            "place": place,
            "topic": advice.topic,
            "what": advice.what,
            "evidence": advice.evidence,
            "share_of_step": advice.share,
            "techniques": "\n".join(advice.techniques),
        }


def comparison_tables(found: Comparison) -> dict[str, pd.DataFrame]:
    """The tables of a comparison by name (`WHY_NO_DIFFERENCE`); those without data are empty."""
    first = [found.step] if found.step else []
    steps = [*first, *found.by_rank, *found.phases, *found.device]
    parts = {
        "compare_steps": steps,
        "compare_operators": found.operators,
        "compare_communication": found.communication,
        "compare_memory": found.memory,
    }
    return {
        name: pd.DataFrame([_difference(d) for d in part], dtype=object)
        for name, part in parts.items()
    }


def _difference(difference: Difference) -> Row:
    unit = difference.unit
    row: Row = {"kind": difference.kind, "name": difference.name}
    if difference.kind == "operator":
        row["where"] = difference.where
    if difference.base_count is not None or difference.other_count is not None:
        row |= {"base_count": difference.base_count, "other_count": difference.other_count}
    return row | {
        f"base_{unit}": difference.base,
        f"other_{unit}": difference.other,
        f"difference_{unit}": difference.absolute,
        "difference_share": difference.relative,
    }
