"""One rank from its start to its end: devices, process group, training, failures."""

from __future__ import annotations

import os
import sys
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

from launch.rank.recorder import Recorder
from launch.reference.config import Config
from launch.reference.data.generate import dataset_folder, ensure_dataset
from launch.reference.device import Device, open_device
from launch.reference.layout import Layout
from launch.reference.memory import MemoryMeter, open_meter
from launch.reference.parallel import GroupFactory, make_groups
from launch.reference.schema import ConfigError
from launch.reference.train import train

# A collective that waits longer fails; a rank that dies closes its connections at once.
_COLLECTIVE_TIMEOUT = timedelta(minutes=10)


def run_rank(config: Config, layout: Layout, recorder: Recorder) -> int:
    """Trains as the rank that the environment says; the exit code.

    Raises ConfigError. Any other failure is recorded and ends in exit code 1.
    """
    rank = int(os.environ.get("RANK", "0"))
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    device = open_device(config.device.type, local_rank)
    recorder.start(rank, layout.world_size, device.type, torch.__version__)
    meter = open_meter(device)
    try:
        _train(config, layout, rank, local_rank, device, meter, recorder)
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 (the end of the rank: all is recorded)
        _record_failure(error, device, meter, recorder)
        # Without the usual shutdown: it would wait for peers and threads.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    recorder.end()
    return 0


def _train(
    config: Config,
    layout: Layout,
    rank: int,
    local_rank: int,
    device: Device,
    meter: MemoryMeter,
    recorder: Recorder,
) -> None:
    if local_rank == 0:
        ensure_dataset(config)
    if layout.world_size > 1:
        dist.init_process_group(
            device.backend,
            rank=rank,
            world_size=layout.world_size,
            timeout=_COLLECTIVE_TIMEOUT,
        )
        # The others wait here for the data set.
        dist.barrier()
    groups = make_groups(layout, GroupFactory(rank, layout.world_size), rank)
    train(config, layout, groups, device, dataset_folder(config), meter, recorder)
    if layout.world_size > 1:
        dist.destroy_process_group()


def _record_failure(
    error: Exception, device: Device, meter: MemoryMeter, recorder: Recorder
) -> None:
    device.uncap_memory()
    meter.stop()
    kind = "oom" if device.is_out_of_memory(error) else "exception"
    last_line = traceback.format_exception_only(error)[-1].strip()
    recorder.error(kind, last_line, peak_allocated_bytes=meter.peak_allocated)
    traceback.print_exception(error)
