"""Which kind of step comes next: pure decisions, without torch."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum

from launch.rank.profile_options import ProfileOptions
from launch.reference.config import Config


class StepKind(Enum):
    """What a step is made for."""

    MEMORY = "memory"  # warms up, while peak memory is observed
    PLAIN = "plain"  # training; in a measuring trial the step is scored
    PROFILE = "profile"  # under a profiler, on some of the ranks


@dataclass(frozen=True)
class Window:
    """Steps under a profiler. request: the id of the request for them, None where planned."""

    options: ProfileOptions
    request: str | None = None


@dataclass(frozen=True)
class Step:
    """One step. is_first, is_last: of the memory steps, or of its window."""

    number: int
    kind: StepKind
    is_first: bool = False
    is_last: bool = False
    window: Window | None = None


class Schedule:
    """The steps of a run: memory steps, plain steps, the planned profile.

    A profile that is requested meanwhile comes next, and its steps come on top; but not among
    the memory steps where their meter is a profiler itself (profile_among_memory=False). After
    `finish` no plain step comes.
    """

    def __init__(
        self,
        memory_steps: int,
        plain_steps: int,
        profile: ProfileOptions | None = None,
        profile_among_memory: bool = False,
    ) -> None:
        self._memory_steps = memory_steps
        self._memory_left = memory_steps
        self._plain_left = plain_steps
        self._planned = None if profile is None else Window(profile)
        self._profile_among_memory = profile_among_memory
        self._requested: deque[Window] = deque()
        self._window: Window | None = None
        self._window_left = 0
        self._number = -1

    @classmethod
    def of(cls, config: Config) -> Schedule:
        """The steps that a configuration asks for: `training.steps` of them in all."""
        measurement = config.measurement
        if measurement is None:
            return cls(0, config.training.steps)
        profile = measurement.profile
        plain = config.training.steps - measurement.memory_steps
        if profile is not None:
            plain -= profile.total_steps
        among = config.device.type != "cpu"  # where the allocator itself counts its memory
        return cls(measurement.memory_steps, plain, profile, profile_among_memory=among)

    def finish(self) -> None:
        """No more plain steps."""
        self._plain_left = 0

    def request(self, window: Window) -> None:
        """Steps under a profiler, as soon as may be."""
        self._requested.append(window)

    def next(self) -> Step | None:
        """The next step, None at the end."""
        self._number += 1
        if self._window_left == 0:
            self._open_window()
        if self._window is not None and self._window_left > 0:
            return self._profile_step(self._window)
        if self._memory_left > 0:
            return self._memory_step()
        if self._plain_left > 0:
            self._plain_left -= 1
            return Step(self._number, StepKind.PLAIN)
        return None

    def _open_window(self) -> None:
        self._window = None
        if self._memory_left > 0 and not self._profile_among_memory:
            return
        if self._requested:
            self._window = self._requested.popleft()
        elif self._memory_left == 0 and self._plain_left == 0:
            self._window, self._planned = self._planned, None
        if self._window is not None:
            self._window_left = self._window.options.total_steps

    def _profile_step(self, window: Window) -> Step:
        is_first = self._window_left == window.options.total_steps
        self._window_left -= 1
        return Step(self._number, StepKind.PROFILE, is_first, self._window_left == 0, window)

    def _memory_step(self) -> Step:
        is_first = self._memory_left == self._memory_steps
        self._memory_left -= 1
        return Step(self._number, StepKind.MEMORY, is_first, self._memory_left == 0)
