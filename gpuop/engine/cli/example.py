"""`gpuop run`: runs examples on a device."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from gpuop.base.errors import SemanticError
from gpuop.runtime.devices import use_device


def run_example(example: str, arguments: Sequence[str], device: str | None) -> None:
    """Run a file or a module on a device, as Python does."""
    path = Path(example)
    if not path.exists() and (path.suffix == ".py" or importlib.util.find_spec(example) is None):
        raise SemanticError(f"there is no file or module {example}; give a path, as `gpuop run examples/unsharp.py`")
    sys.argv = [example, *arguments]
    if path.exists():
        sys.path.insert(0, str(path.parent.resolve()))

    def run() -> None:
        if path.exists():
            runpy.run_path(example, run_name="__main__")
        else:
            runpy.run_module(example, run_name="__main__", alter_sys=True)

    if device is None:
        run()
        return
    with use_device(device):
        run()
