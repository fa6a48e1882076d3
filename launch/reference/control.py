"""What the launcher asks of a running trial, heard by all ranks at the same step.

Rank 0 looks before a step; what it saw travels with the loss in the all-reduce that ends
the step, so that it costs no collective of its own.
"""

from __future__ import annotations

import torch.distributed as dist

from launch.rank.commands import Commands, ProfileRequest
from launch.reference.parallel import Group
from launch.reference.schedule import Schedule, Window

_FINISH = 1
_REQUEST = 2


class Control:
    """Turns commands into changes of the schedule, on every rank alike."""

    def __init__(self, commands: Commands, world: Group) -> None:
        self._commands = commands
        self._world = world
        self._request: ProfileRequest | None = None

    def look(self) -> float:
        """This rank's summand in the all-reduce: what rank 0 sees, 0 on the others."""
        if self._world.index != 0:
            return 0.0
        self._request = self._commands.new_request()
        finish = self._commands.finish_asked()
        return float(_FINISH * finish + _REQUEST * (self._request is not None))

    def obey(self, heard: float, schedule: Schedule) -> None:
        """Does what the sum over all ranks says. Collective when a profile is requested."""
        code = int(heard)
        if code & _FINISH:
            schedule.finish()
        if code & _REQUEST:
            request = self._from_rank_0()
            schedule.request(Window(request.options, request.id))

    def _from_rank_0(self) -> ProfileRequest:
        box = [self._request]
        if self._world.handle is not None:
            dist.broadcast_object_list(box, src=0, group=self._world.handle)
        request = box[0]
        assert request is not None
        return request
