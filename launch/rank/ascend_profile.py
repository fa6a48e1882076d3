"""Profiles of whole steps by torch_npu, as an `*_ascend_pt` folder.

Runs inside the trainer's own Python, so: standard library only, Python 3.8 on, and the
torch_npu that the trainer has loaded. MindStudio Insight opens the folder.
Source: torch_npu 2.13, profiler/profiler.py. Not run so far: it needs CANN.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launch.rank.profile_options import ProfileOptions


class AscendProfile:
    """One collection: `warmup_steps` are thrown away, `steps` are written.

    torch_npu parses what it collected when it stops, in this process: that takes seconds for a
    light profile and minutes for a full one, in which no rank makes a step: less than the
    trial's `step_s` and than the timeout of a collective, or the trial is lost.
    """

    def __init__(self, torch_npu: Any, folder: Path, worker: str, options: ProfileOptions) -> None:
        self._profiler = torch_npu.profiler
        self._folder = folder
        self._worker = worker
        self._options = options
        self._profile: Any = None
        self._before: set[Path] = set()

    def start(self, step: int) -> None:
        """Starts before the first step."""
        self._before = self._folders()
        self._profile = self._profiler.profile(
            activities=self._activities(),
            schedule=self._schedule(step),
            # It leaves raw data only, unless there is a handler that parses them.
            on_trace_ready=self._profiler.tensorboard_trace_handler(
                dir_name=str(self._folder), worker_name=self._worker, analyse_flag=True
            ),
            record_shapes=self._options.record_shapes,
            profile_memory=self._options.profile_memory,
            with_stack=self._options.with_stack,
            with_flops=self._options.with_flops,
            with_modules=self._options.with_modules,
            experimental_config=self._experimental_config(),
        )
        self._profile.step_num = step  # ranges are named as the trainer counts its steps
        self._profile.start()

    def next(self, step: int) -> None:
        """Goes on from one step to the next."""
        self._profile.step()

    def stop(self) -> Path:
        """Ends after the last step, writes and parses; the folder.

        Raises RuntimeError when there is none: torch_npu prints its errors, it raises none.
        """
        profile, self._profile = self._profile, None
        profile.stop()
        new = self._folders() - self._before
        if not new:
            raise RuntimeError("torch_npu wrote no profile; its messages are in the rank's log")
        return max(new)

    def abandon(self) -> None:
        """Ends the collection after a failure, so that another one can start."""
        profile, self._profile = self._profile, None
        if profile is not None:
            profile.stop()

    def _folders(self) -> set[Path]:
        return set(self._folder.glob(f"{self._worker}_*_ascend_pt"))

    def _activities(self) -> list[Any]:
        activity = self._profiler.ProfilerActivity
        return [activity.CPU, activity.NPU] if self._options.with_cpu else [activity.NPU]

    def _schedule(self, first: int) -> Any:
        """What is done at a step of the trainer's count; torch_npu's own counts from 0."""
        action = self._profiler.ProfilerAction
        recorded = first + self._options.warmup_steps
        last = first + self._options.total_steps - 1

        def at(step: int) -> Any:
            if step < recorded and self._options.warmup_steps:
                return action.WARMUP
            if step < last:
                return action.RECORD
            return action.RECORD_AND_SAVE if step == last else action.NONE

        # torch_npu asks for step 0 when it is made, and takes the answer for the first.
        return lambda step: at(max(step, first))

    def _experimental_config(self) -> Any:
        options, profiler = self._options, self._profiler
        more = {}
        if options.gc_detect_threshold is not None:  # older versions have no such option
            more["gc_detect_threshold"] = options.gc_detect_threshold
        return profiler._ExperimentalConfig(
            profiler_level=getattr(profiler.ProfilerLevel, options.profiler_level),
            aic_metrics=getattr(profiler.AiCMetrics, options.aic_metrics),
            l2_cache=options.l2_cache,
            record_op_args=options.record_op_args,
            data_simplification=options.data_simplification,
            export_type=getattr(profiler.ExportType, options.export_type),
            **more,
        )
