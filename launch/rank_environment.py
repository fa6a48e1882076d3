"""The environment of a rank, as a pure function of its job."""

from __future__ import annotations

from launch.markers import ROLE
from launch.node_job import Meeting, NodeJob


def rank_environment(job: NodeJob, meeting: Meeting, rank: int) -> dict[str, str]:
    """The job's environment with torchrun's variables and the place of the rank's records.

    Source of the names: torch.distributed.run, "Environment Variables".
    """
    env = {**_defaults(job), **job.env}
    env.pop(ROLE, None)
    env.update(
        MASTER_ADDR=meeting.address,
        MASTER_PORT=str(meeting.port),
        AUTOTUNE_RECORDS=str(job.records(rank)),
    )
    if job.processes == "node":
        # For the program's own torchrun or script; rank variables would name one rank of many.
        env.update(
            NNODES=str(job.nodes), NODE_RANK=str(job.node), NPROC_PER_NODE=str(job.ranks_per_node)
        )
        return env
    env.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank - job.ranks.start),
        WORLD_SIZE=str(job.world_size),
        LOCAL_WORLD_SIZE=str(job.ranks_per_node),
    )
    return env


def _defaults(job: NodeJob) -> dict[str, str]:
    """What a rank gets unless the user has set it."""
    if job.device != "cpu":
        return {}
    # Ranks with more threads than cores slow each other down and make times unrepeatable.
    defaults = {"OMP_NUM_THREADS": "1"}
    if job.nodes == 1:
        defaults["GLOO_SOCKET_IFNAME"] = "lo"
    return defaults
