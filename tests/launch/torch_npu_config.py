"""What torch_npu's dynamic_profile reads from a configuration: `SOURCES CONFIG.json RANK`.

SOURCES: the folder that holds torch_npu, unpacked from its wheel. Only its parser of the
configuration runs; what would need CANN is replaced by empty modules.
"""

import json
import os
import sys
import types
from enum import Enum
from pathlib import Path


def stub(sources: Path, name: str, **contents: object) -> None:
    module = types.ModuleType(name)
    module.__path__ = [str(sources.joinpath(*name.split(".")))]  # type: ignore[attr-defined]
    vars(module).update(contents)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)


def main(sources: Path, config: Path, rank: str) -> None:
    os.environ["RANK"] = rank
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    activity = Enum("ProfilerActivity", ["CPU", "NPU"])
    for name in ("torch_npu", "torch_npu.profiler", "torch_npu.utils", "torch_npu._C"):
        stub(sources, name)
    stub(sources, "torch_npu._C._profiler", ProfilerActivity=activity, _ExperimentalConfig=object)
    from torch_npu.profiler._dynamic_profiler._dynamic_profiler_config_context import (
        ConfigContext,
    )

    content = {**json.loads(config.read_text()), "is_valid": True}
    # As the monitor passes it on, through shared memory.
    content = ConfigContext.bytes_to_profiler_cfg_json(
        ConfigContext.profiler_cfg_json_to_bytes(content)
    )
    found = ConfigContext(content)
    json.dump(
        {
            "valid": found.valid(),
            "activities": sorted(one.name for one in found.activities()),
            "prof_path": found.prof_path,
            "analyse": found.analyse(),
            "active": found.active(),
            "warmup": found.warmup(),
            "start_step": found.start_step(),
            "at_once": found.start(),
            **{name: getattr(found, name) for name in SHARED},
            "experimental": vars(found.experimental_config),
        },
        sys.stdout,
    )


SHARED = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")

if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
