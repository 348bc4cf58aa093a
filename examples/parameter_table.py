"""Circle's table of parameters: how many threads and values a kernel has, by architecture and type.

In Circle a kernel is a template over the architecture, whose parameters are read from JSON by `{sm, type}` while it compiles.
Here the table is a dict, from JSON too, of records for `_target.choose`: each architecture takes its own record, or that of the
nearest one below it. The grid follows the target as well, as a thread has `vt` values.

    python examples/parameter_table.py [--values 1000003] [--device opencl:0]
"""

import argparse
import json
import re
import sys

import numpy as np

import gpuop as gp
from gpuop.dsl import *

TABLE = json.loads("""{
  "float32": {"cuda:sm_35": {"nt": 128, "vt": 11}, "cuda:sm_52": {"nt": 128, "vt": 15}, "cuda:sm_60": {"nt": 256, "vt": 7},
              "cuda:sm_70": {"nt": 256, "vt": 15, "unrolled": true}, "opencl": {"nt": 16, "vt": 4}},
  "float64": {"cuda:sm_35": {"nt": 128, "vt": 5}, "cuda:sm_70": {"nt": 256, "vt": 8, "unrolled": true}}
}""")
DEFAULTS = {"nt": 64, "vt": 1, "unrolled": False}  # of other targets, and of what a record leaves out
ARCHITECTURES = ("sm_35", "sm_50", "sm_52", "sm_60", "sm_61", "sm_70", "sm_75", "sm_90")


@gp.operator
def axpy(a, x, y):
    p = _target.choose(TABLE[x.dtype], default=DEFAULTS)
    (n,) = x.field_shape
    _globalThreads(-(-n // p.vt))
    _localThreads(p.nt)
    with _for(p.vt, unroll=p.unrolled) as k:
        at = k * _columns + _column  # neighbours at once, a grid apart from turn to turn
        with _if(at < n):
            _writeTensor(_out0, a * _readTensor(x, at) + _readTensor(y, at), at)


def launch(dtype, n, target):
    """(threads, threads of a group) for a target, as the text says them."""
    kind = gp.FieldType(n, dtype=dtype)
    text = axpy.source(2, kind, kind, target=target)
    ((threads, group),) = re.findall(r"axpy: (\d+) threads.*__launch_bounds__\((\d+)\)", text, re.S)
    return int(threads), int(group)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--values", type=int, default=1_000_003)
    parser.add_argument("--device")
    given = parser.parse_args(arguments)
    for dtype in TABLE:
        for architecture in ARCHITECTURES:
            threads, group = launch(dtype, given.values, f"cuda:{architecture}")
            print(f"{dtype} {architecture}: {threads} threads in groups of {group}")
    x, y = np.random.default_rng(0).random((2, given.values), np.float32)
    with gp.use_device(given.device or gp.devices()[0].name):
        same = np.array_equal(axpy(2, gp.ScalarField(x), gp.ScalarField(y)).numpy(), 2 * x + y)
    print("equals NumPy" if same else "differs from NumPy")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
