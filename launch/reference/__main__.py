"""`python -m launch.reference CONFIG.yaml`: trains the reference models.

One process a rank, started by torchrun or by the supervisor, both of which set RANK,
LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT; without them one
rank trains alone. AUTOTUNE_RECORDS names the file that takes this rank's records.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from launch.rank.recorder import Recorder
from launch.reference.config import load_config
from launch.reference.import_settings import with_defaults
from launch.reference.layout import Layout
from launch.reference.schema import ConfigError

_EPILOG = """\
The configuration has the sections model (kind: vlm or dit), data, parallel, training,
features, device and measurement; an exported best.yaml is taken as well.

Exit codes: 0 all steps made, 1 out of memory or another failure, 2 wrong configuration.

Example: torchrun --nproc-per-node 4 -m launch.reference config.yaml
"""


def main(arguments: Sequence[str]) -> int:
    """Runs one rank; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m launch.reference",
        description="A small distributed trainer that uses every tuned technique.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", type=Path, help="YAML file")
    options = parser.parse_args(arguments)
    recorder = Recorder.from_environment()
    try:
        config = load_config(options.config)
        layout = Layout.of(config, int(os.environ.get("WORLD_SIZE", "1")))
        os.environ.update(with_defaults(os.environ))
        # Only now: a wrong configuration is answered before torch is imported.
        from launch.reference.rank_main import run_rank

        return run_rank(config, layout, recorder)
    except ConfigError as error:
        recorder.error("config", str(error))
        print(f"wrong configuration: {error}", file=sys.stderr)  # noqa: T201
        return 2


if __name__ == "__main__":
    exit_code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Without Python's own shutdown, which spends more than a second on taking torch apart; the
    # process group is closed and every record is written.
    os._exit(exit_code)
