"""JAX and PyTorch, which compile functions of whole arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .array_programs import Programs, Window
from .contestant import Contestant, Maker
from .expected import bordered
from .pipeline import Array, Pipeline, as_tuple


class Padded:
    """JAX fuses slices of padded arrays; CuPy has the same functions."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def window(self, a: Any, radius: int, mode: str, axes: int = 2) -> Window:
        margins = [(radius, radius)] * axes + [(0, 0)] * (a.ndim - axes)
        padded = self.xp.pad(a, margins, mode="constant" if mode == "zero" else mode)
        return lambda *moves: padded[
            tuple(slice(radius + m, radius + m + n) for m, n in zip(moves, a.shape, strict=False))
        ]

    def cast(self, a: Any, dtype: str) -> Any:
        return a.astype(dtype)

    def counts(self, levels: Any) -> Any:
        return self.xp.bincount(levels.ravel(), length=256).astype("int32")

    def parity(self, a: Any, axis: int) -> Any:
        even = self.xp.arange(a.shape[axis]) % 2 == 0
        return even if axis else even[:, None]

    def every_other(self, a: Any, axis: int) -> Any:
        n = a.shape[axis]
        return tuple(a.take(bordered(2 * np.arange((n + 1) // 2) + k, n, "clamp"), axis) for k in (-1, 0, 1, 2))

    def doubled(self, a: Any, n: int, axis: int) -> Any:
        at = np.arange(n)
        both = (at // 2, at // 2 - 1 + 2 * (at % 2))
        return tuple(a.take(bordered(k, a.shape[axis], "clamp"), axis) for k in both)

    def chosen(self, a: Any, element: Any) -> Any:
        return self.xp.take_along_axis(a, element[..., None], -1)[..., 0]

    def contiguous(self, a: Any) -> Any:
        return a


class Torch:
    """torch.compile fuses reads at computed indices; those of padded arrays it does not."""

    def __init__(self) -> None:
        import torch

        self.xp = torch

    def window(self, a: Any, radius: int, mode: str, axes: int = 2) -> Window:
        def at(*moves: int) -> Any:
            moved = a
            for axis, k in enumerate(moves):
                if k:
                    moved = self.taken(moved, self.arange(a, a.shape[axis]) + k, axis, mode)
            return moved

        return at

    def arange(self, a: Any, n: int) -> Any:
        return self.xp.arange(n, device=a.device)

    def taken(self, a: Any, index: Any, axis: int, mode: str) -> Any:
        n = a.shape[axis]
        last = n - 1
        inside = index.clamp(0, last)
        if mode == "wrap":
            inside = self.xp.where(index < 0, index + n, self.xp.where(index > last, index - n, index))
        if mode == "reflect":
            inside = last - (last - index.abs()).abs()
        values = a[(slice(None),) * axis + (inside,)]
        if mode != "zero":
            return values
        there = (index == inside).reshape((-1,) + (1,) * (a.ndim - 1 - axis))
        return self.xp.where(there, values, 0)

    def cast(self, a: Any, dtype: str) -> Any:
        return a.to(getattr(self.xp, dtype))

    def counts(self, levels: Any) -> Any:
        return self.xp.bincount(levels.flatten(), minlength=256).to(self.xp.int32)

    def parity(self, a: Any, axis: int) -> Any:
        even = self.arange(a, a.shape[axis]) % 2 == 0
        return even if axis else even[:, None]

    def every_other(self, a: Any, axis: int) -> Any:
        first = 2 * self.arange(a, (a.shape[axis] + 1) // 2)
        return tuple(self.taken(a, first + k, axis, "edge") for k in (-1, 0, 1, 2))

    def doubled(self, a: Any, n: int, axis: int) -> Any:
        at = self.arange(a, n)
        return tuple(self.taken(a, k, axis, "edge") for k in (at // 2, at // 2 - 1 + 2 * (at % 2)))

    def chosen(self, a: Any, element: Any) -> Any:
        return self.xp.take_along_dim(a, element[..., None].to(self.xp.int64), -1)[..., 0]

    def contiguous(self, a: Any) -> Any:
        return a.contiguous()


def jax_entries(pipeline: Pipeline) -> dict[str, Maker]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others need memory too
    import jax.numpy

    if not hasattr(Programs, pipeline.program):
        return {}
    function = getattr(Programs(Padded(jax.numpy)), pipeline.program)
    compiled = jax.jit(function)

    def make(arrays: tuple[Array, ...]) -> Contestant:
        inputs = tuple(map(jax.device_put, arrays))
        last: list[Any] = [None]

        def run(times: int) -> None:
            for _ in range(times):
                last[0] = compiled(*inputs)
            jax.block_until_ready(last[0])

        run(1)
        return Contestant(run, lambda: tuple(map(np.asarray, as_tuple(last[0]))), (function,), allocates=True)

    return {"JAX": make}


def torch_entries(pipeline: Pipeline, modes: Sequence[str] = ("default",)) -> dict[str, Maker]:
    """PyTorch as compiled in each of some modes; another size makes it compile again, for all sizes."""
    import torch

    if not hasattr(Programs, pipeline.program):
        return {}
    torch._dynamo.reset()
    function = getattr(Programs(Torch()), pipeline.program)

    def maker(mode: str) -> Maker:
        compiled = torch.compile(function, mode=mode)
        device = "cuda" if torch.cuda.is_available() else "cpu"

        def make(arrays: tuple[Array, ...]) -> Contestant:
            inputs = tuple(torch.from_numpy(a).to(device) for a in arrays)
            last: list[Any] = [None]

            def run(times: int) -> None:
                for _ in range(times):
                    last[0] = compiled(*inputs)
                if device == "cuda":
                    torch.cuda.synchronize()

            run(1)
            results = lambda: tuple(r.cpu().numpy() for r in as_tuple(last[0]))  # noqa: E731
            return Contestant(run, results, (function,), allocates=True)

        return make

    return {"torch.compile" if mode == "default" else f"torch.compile, {mode}": maker(mode) for mode in modes}
