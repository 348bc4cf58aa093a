"""Arguments for measurements."""

from __future__ import annotations

import numpy as np

from gpuop.base.errors import GpuopError
from gpuop.ir.nodes import FieldParam
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node
from gpuop.runtime.base.backend import Argument, Array, Backend
from gpuop.runtime.base.host_arrays import planes_of


def value_of(param: FieldParam, node: Node | None, backend: Backend) -> Argument:
    """Return an argument to measure with: the field's values if it has some, otherwise numbers from 0 to 1, or to 99."""
    planes = planes_of(param.type, _values(param.type, node))
    return tuple(planes.reshape(-1).tolist()) if param.by_value else backend.upload(param.type, planes)


def _values(kind: FieldType, node: Node | None) -> Array:
    if isinstance(node, Leaf):
        try:
            return node.source.read()[0]
        except GpuopError:  # a sensor, an argument of a pipeline, memory of another device
            pass
    rng, dtype = np.random.default_rng(0), kind.array_dtype
    shape = tuple(kind.array_shape)
    if dtype.kind in "fc":
        return rng.random(shape, np.float32).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
