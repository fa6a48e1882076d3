from __future__ import annotations

from pathlib import Path

import pytest

from .oracle import Bash


@pytest.fixture
def bash(tmp_path: Path) -> Bash:
    return Bash(tmp_path)
