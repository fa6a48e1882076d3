"""Doing something to a module as soon as a program imports it."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from typing import Any, Callable  # noqa: UP035 (Python 3.8 subscripts no other)

Action = Callable[[Any], None]


def after_import(name: str, action: Action) -> None:
    """Calls `action` with the module, once, when it has been imported."""
    sys.meta_path.insert(0, _Finder(name, action))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, action: Action) -> None:
        self._name = name
        self._action = action

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)  # the other finders know where it is
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._action)
        return spec


class _Loader(importlib.abc.Loader):
    """Another loader, and the action after it."""

    def __init__(self, loader: Any, action: Action) -> None:
        self._loader = loader
        self._action = action

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._loader.exec_module(module)
        self._action(module)

    def __getattr__(self, name: str) -> Any:  # what some programs ask their modules' loaders
        return getattr(self._loader, name)
