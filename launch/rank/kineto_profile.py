"""Profiles of whole steps by PyTorch's own profiler, as a Kineto trace.

Runs inside the trainer's own Python, so: standard library only, Python 3.8 on, and the torch
that the trainer has loaded. The trace opens in Perfetto and in TensorBoard's profiler plugin.
"""

from __future__ import annotations

import gzip
import json
import shutil
import time
from pathlib import Path
from typing import Any

from launch.rank.profile_options import ProfileOptions

# Level 9, the default, takes four times as long for an eighth less.
_GZIP_LEVEL = 6


class KinetoProfile:
    """One collection: `warmup_steps` are thrown away, `steps` are written.

    Made of `torch.autograd.profiler`, which writes the same trace as `torch.profiler` does;
    the latter imports torch's compiler when it starts: 1.1 s and 80 MiB in the rank.
    """

    def __init__(
        self, torch: Any, device: str, folder: Path, worker: str, options: ProfileOptions
    ) -> None:
        self._torch = torch
        self._device = device
        self._folder = folder
        self._worker = worker
        self._options = options
        self._warmup_left = options.warmup_steps
        self._profile: Any = None
        self._range: Any = None
        self._is_open = False

    def start(self, step: int) -> None:
        """Starts before the first step."""
        self._open()
        self._begin(step)

    def next(self, step: int) -> None:
        """Goes on from one step to the next."""
        self._end()
        self._warmup_left -= 1
        if self._warmup_left == 0:
            self._close()
            self._open()
        self._begin(step)

    def stop(self) -> Path:
        """Ends after the last step and writes the trace; its file."""
        self._end()
        self._close()
        name = f"{self._worker}.{int(time.time() * 1000)}.pt.trace.json.gz"
        self._write(self._folder / name)
        return self._folder / name

    def abandon(self) -> None:
        """Ends the collection after a failure, so that another one can start."""
        if self._is_open:
            self._close()

    def _open(self) -> None:
        accelerated = self._device != "cpu"
        self._profile = self._torch.autograd.profiler.profile(
            use_kineto=True,
            use_cpu=self._options.with_cpu or not accelerated,
            use_device=self._device if accelerated else None,
            record_shapes=self._options.record_shapes,
            profile_memory=self._options.profile_memory,
            with_stack=self._options.with_stack,
            with_flops=self._options.with_flops,
            with_modules=self._options.with_modules,
        )
        self._profile.__enter__()
        self._is_open = True

    def _close(self) -> None:
        self._is_open = False
        self._profile.__exit__(None, None, None)

    def _begin(self, step: int) -> None:
        # Named as by torch.profiler: readers find steps by it.
        self._range = self._torch.autograd.profiler.record_function(f"ProfilerStep#{step}")
        self._range.__enter__()

    def _end(self) -> None:
        self._range.__exit__(None, None, None)

    def _write(self, target: Path) -> None:
        """Appears under its name when it is whole."""
        plain = target.with_name(f".{target.name}.json")
        packed = target.with_name(f".{target.name}.part")
        try:
            self._profile.export_chrome_trace(str(plain))
            with plain.open("rb") as source, gzip.open(packed, "wb", _GZIP_LEVEL) as sink:
                _copy(source, sink, self._distributed())
            packed.replace(target)
        finally:
            for path in (plain, packed):
                if path.exists():
                    path.unlink()

    def _distributed(self) -> dict[str, Any]:
        """The ranks, as torch.profiler adds them to a trace."""
        distributed = self._torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return {"rank": 0, "world_size": 1}
        found = {
            "backend": distributed.get_backend(),
            "rank": distributed.get_rank(),
            "world_size": distributed.get_world_size(),
        }
        groups = getattr(distributed.distributed_c10d, "_get_all_pg_configs", None)
        if groups is not None:
            found["pg_config"] = groups()
        return found


def _copy(source: Any, sink: Any, distributed: dict[str, Any]) -> None:
    """The trace with one key more in front of its others."""
    before, brace, after = source.read(64).partition(b"{")
    if not brace:
        raise ValueError("the profiler wrote no JSON object")
    more = f'"distributedInfo": {json.dumps(distributed)},'.encode()
    sink.write(before + brace + more + after)
    shutil.copyfileobj(source, sink)
