"""Lazy package attributes: names that load their module at first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def load(package: str, names: Mapping[str, str], name: str) -> Any:
    """Object of a package under a name, bound in the package so that this runs once.

    Args:
        names: the definition of each name of the package, as "package.module.name".
    """
    module, _, own = names[name].rpartition(".")
    value = vars(sys.modules[package])[name] = getattr(import_module(module), own)
    return value
