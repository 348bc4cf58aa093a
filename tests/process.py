"""Programs in a process of their own, with an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Doubles a field in a kernel, and prints the sum and the device.
DOUBLE = """
import numpy as np
import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime.devices import current
@gp.operator
def doubled(f):
    return _readTensor(f) * 2
print(doubled(gp.ScalarField(np.arange(5, dtype="f"))).numpy().sum(), current().name)
"""


def python(*arguments: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """Run Python with these variables in the environment, None taking one out; an error fails the test."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("GPUOP_", "OCL_ICD"))}
    mine |= {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
        "GPUOP_CACHE": os.environ.get("GPUOP_CACHE", ""),
    }
    mine |= {name: value for name, value in environment.items() if value is not None}
    mine = {name: value for name, value in mine.items() if environment.get(name, "") is not None}
    done = subprocess.run(
        [sys.executable, *arguments], env=mine, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done


def devices(**environment: str | None) -> str:
    """The output of `gpuop devices`."""
    return python("-m", "gpuop", "devices", **environment).stdout
