"""What is found out about the trainer's interpreter and the devices of a host."""

from __future__ import annotations

import platform
import sys
import time
from pathlib import Path

import pytest

from autotune.errors import UserError
from launch.environment import local_devices, probe_environment
from launch.errors import InterpreterNotFoundError, PackageMissingError
from launch.rank import probe


@pytest.fixture
def fake_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages that have a version and cannot be imported."""
    for name, version in (("torch", "2.7.1"), ("torch_npu", "2.7.1.post1")):
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.mark.usefixtures("fake_torch")
def test_versions_are_found_without_an_import() -> None:
    before = time.monotonic()
    found = probe_environment(sys.executable, "npu")
    assert time.monotonic() - before < 2.0
    assert (found["torch"], found["torch_npu"]) == ("2.7.1", "2.7.1.post1")
    assert found["python"] == platform.python_version()
    assert int(found["cpu_count"]) >= 1
    assert found["cpu"]


def test_no_interpreter() -> None:
    with pytest.raises(InterpreterNotFoundError, match=r"trainer\.python=/no/such/python"):
        probe_environment("/no/such/python", "cpu")


def test_a_program_that_is_no_interpreter() -> None:
    with pytest.raises(InterpreterNotFoundError, match=r"trainer\.python=/bin/false"):
        probe_environment("/bin/false", "cpu")


@pytest.mark.parametrize("program", ["/bin/ls", "/bin/echo", "/bin/cat"])
def test_what_is_no_python_is_called_so(program: str) -> None:
    """And nobody is told to install torch for a trainer that does not ask for it."""
    with pytest.raises(InterpreterNotFoundError) as error:
        probe_environment(program, "cpu", needs=())
    message = str(error.value)
    assert message.startswith(f"trainer.python={program} does not run: it is no working Python: ")
    assert "trainer.python=/opt/venv/bin/python" in message
    assert "Command" not in message
    assert "pip install" not in message


def test_an_interpreter_that_may_not_be_executed() -> None:
    with pytest.raises(InterpreterNotFoundError, match="cannot be started: Permission denied"):
        probe_environment("/etc/passwd", "cpu")


def test_an_interpreter_without_torch(tmp_path: Path) -> None:
    bare = tmp_path / "bare python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(PackageMissingError, match="pip install torch") as error:
        probe_environment(str(bare), "cpu")
    assert str(bare) in str(error.value)
    assert isinstance(error.value, UserError)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (f"{platform.machine()}-linux/ascend_toolkit_install.info", "version=8.0.RC3\n"),
        ("version.cfg", "# CANN\ntoolkit_running_version=[7.6.0.1.220:8.0.RC3]\n"),
    ],
)
def test_the_version_of_cann(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"package_name=Ascend-cann-toolkit\n{text}arch=aarch64\n")
    assert probe.cann_version([tmp_path / "not there", tmp_path]) == "8.0.RC3"


def test_devices_of_a_host(tmp_path: Path) -> None:
    for name in ("davinci0", "davinci7", "davinci_manager", "nvidia0", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert local_devices("npu", tmp_path) == 2
    assert local_devices("cuda", tmp_path) == 1
    assert local_devices("cpu", tmp_path) is None
