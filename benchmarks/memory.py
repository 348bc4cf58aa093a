"""Device memory of a chain of 200 operators on 4096², fused and unfused, next to a buffer for every value.

python benchmarks/memory.py [--device NAME] [--operators 200] [--size 4096]
"""

from __future__ import annotations

import argparse
import json

import numpy as np

import gpuop as gp
from gpuop.dsl import _readTensor

MIB = 2**20


@gp.operator
def plus(field):  # type: ignore[no-untyped-def]
    return _readTensor(field) + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device")
    parser.add_argument("--operators", type=int, default=200)
    parser.add_argument("--size", type=int, default=4096)
    args = parser.parse_args()
    image = np.zeros((args.size, args.size), np.float32)
    for optimize in (True, False):
        with gp.ComputeGraph(args.device, optimize=optimize) as graph:
            field = gp.ScalarField(image)
            for _ in range(args.operators):
                field = plus(field)
            graph.probe(field, "sum")
        graph.step()
        assert (graph.read("sum") == args.operators).all()
        facts = json.loads(graph.explain(format="json"))
        print(
            f"{'fused' if optimize else 'unfused'}: {facts['kernel_count']} kernels write into {facts['buffers']} buffers, "
            f"{facts['buffer_bytes'] / MIB:.0f} MiB; a buffer for every value: {args.operators * image.nbytes / MIB:.0f} MiB"
        )
        graph.release()


if __name__ == "__main__":
    main()
