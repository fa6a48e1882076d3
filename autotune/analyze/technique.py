"""A technique that shortens a step or its peak memory, and when it applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Parameters = Mapping[str, object]


@dataclass(frozen=True)
class Condition:
    """When a technique makes sense. text: what to say where the parameters are not known."""

    text: str
    holds: Callable[[Parameters], bool]


def _always(_: Parameters) -> bool:
    return True


ALWAYS = Condition("", _always)


@dataclass(frozen=True)
class Technique:
    """One thing to try. knob: the parameter or setting, empty where it is none; change: of it.

    where: `space` (a parameter of our search spaces), `npu` (MindSpeed-MM or torch_npu),
    `other` (PyTorch on other devices), `any`. when: judges the parameters as they are, where
    they are known. costs_memory: makes no sense near the limit.
    """

    knob: str
    change: str
    why: str
    where: str = "any"
    when: Condition = ALWAYS
    costs_memory: bool = False

    def fits(self, device: str, parameters: Parameters | None) -> bool:
        """Whether it can be tried on `device` from where the parameters stand."""
        if self.where == "npu":
            return device == "npu"
        if self.where == "other":
            return device != "npu"
        if self.where != "space" or parameters is None:
            return True
        return self.knob in parameters and self.when.holds(parameters)

    def text(self, parameters: Parameters | None) -> str:
        """As a person reads it, such as `sp_degree smaller (now 4): ...`."""
        what = " ".join(words for words in (self.knob, self.change) if words)
        if parameters is None and self.when.text:
            return f"{what}, {self.when.text}: {self.why}"
        now = f" (now {parameters[self.knob]})" if parameters and self.knob in parameters else ""
        return f"{what}{now}: {self.why}"
