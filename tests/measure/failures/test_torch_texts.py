"""What the PyTorch that is installed really says, on a CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from autotune.measure.failures.diagnosis import Diagnosis
from autotune.measure.failures.kinds import FailureKind
from tests.measure.failures.made import of_log

pytest.importorskip("torch")

LOADER = """
import os, sys
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        {fault}
if __name__ == "__main__":
    for _ in DataLoader(Rows(), num_workers=1):
        pass
"""


def diagnosis(folder: Path, program: str, device: str = "npu") -> Diagnosis:
    script = folder / "train.py"
    script.write_text(program, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode != 0
    return of_log(run.stdout + run.stderr, device=device)


def test_a_taken_port(tmp_path: Path) -> None:
    program = """
import socket
from torch.distributed import TCPStore
taken = socket.socket()
taken.bind(("127.0.0.1", 0))
taken.listen()
TCPStore("127.0.0.1", taken.getsockname()[1], 1, True)
"""
    found = diagnosis(tmp_path, program)
    assert found.kind is FailureKind.PORT_IN_USE


def test_more_memory_than_there_is(tmp_path: Path) -> None:
    program = "import torch\ndef build():\n    torch.empty(1 << 55)\nbuild()\n"
    found = diagnosis(tmp_path, program, "cpu")
    assert found.kind is FailureKind.DEVICE_OOM
    assert found.frame is not None
    assert found.frame.endswith("train.py:3 in build")


def test_a_row_without_its_key(tmp_path: Path) -> None:
    found = diagnosis(tmp_path, LOADER.format(fault="return {}['pixels']"))
    assert (found.kind, found.quote) == (FailureKind.DATA_ERROR, "KeyError: 'pixels'")
    assert found.frame is not None
    assert found.frame.endswith("train.py:8 in __getitem__")


@pytest.mark.parametrize(
    ("signal", "kind"), [(9, FailureKind.HOST_OOM), (7, FailureKind.SHARED_MEMORY_FULL)]
)
def test_a_worker_that_a_signal_ends(tmp_path: Path, signal: int, kind: FailureKind) -> None:
    fault = f"os.kill(os.getpid(), {signal}); import time; time.sleep(30)"
    found = diagnosis(tmp_path, LOADER.format(fault=fault))
    assert found.kind is kind
