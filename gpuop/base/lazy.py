"""Lazy package attributes: names that load their module at first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def load(package: str, names: Mapping[str, str], name: str) -> Any:
    """What a package has under a name. It is bound in the package, which is asked once.

    Args:
        names: where each of the package's names is defined, as "package.module.name".
    """
    module, _, own = names[name].rpartition(".")
    value = vars(sys.modules[package])[name] = getattr(import_module(module), own)
    return value
