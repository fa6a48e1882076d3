"""Whether a process failed while it opened its device: before it could allocate anything."""

from __future__ import annotations

import re

# Functions of torch and torch_npu, by frame; of CANN and of the CUDA driver, by message.
_FRAMES = re.compile(r" in (?:set_device|_lazy_init|init_process_group)$", re.MULTILINE)
_MESSAGES = re.compile(r"\b(?:aclrtSetDevice|rtSetDevice|cuDevicePrimaryCtxRetain)\b")


def is_opening_device(message: str, frames: str) -> bool:
    """By an exception's message and its frames, `path in function`, one a line."""
    return bool(_MESSAGES.search(message) or _FRAMES.search(frames))
