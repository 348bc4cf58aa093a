"""Bundles: the plan of fields, compiled for several targets into one file and called without recording or planning."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpuop.base.cache.atomic_files import Path
from gpuop.base.errors import NearNames, SemanticError, UnsupportedError, described
from gpuop.base.lru import BoundedCache
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.field import Field
from gpuop.dsl.guards.function_wrapper import bind
from gpuop.engine.bundles import writing
from gpuop.engine.bundles.dynamic_sizes import Sizes, stand_ins
from gpuop.engine.bundles.reading import Contents, plan_on, read
from gpuop.engine.evaluate import arrays, boxed, compute
from gpuop.engine.graphs.active_graph import open_graphs
from gpuop.fusion.program import program
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf
from gpuop.runtime.base.backend import Argument, Backend, Buffer, download
from gpuop.runtime.base.device_sources import Evaluated
from gpuop.runtime.base.host_arrays import planes_of
from gpuop.runtime.devices import current
from gpuop.runtime.execute import Prepared

SIZES_KEPT = 64
AT_ONCE = (
    "computes when it is called, so it cannot be a part of a ComputeGraph, a pipeline or an iteration; compile a bundle of "
    "the whole function, or call it with values that are computed"
)


Results = Field | tuple[Field, ...]  # the results of a function
OfSizes = Callable[[Sizes], tuple[Mapping[str, Field], Results]]


def save_bundle(
    path: Path, name: str, arguments: Mapping[str, Field], results: Results, targets: Sequence[Target]
) -> None:
    """Compile the computation of fields from arguments, for targets, into a file. All other inputs become constants.

    Raises:
        SemanticError: part of it runs on the host.
        CompileError, DeviceError: the CUDA compiler refuses a kernel, or does not know an architecture.
    """
    writing.write(path, _recorded(name, arguments, results, ()), targets)


def save_open_bundle(path: Path, name: str, count: int, record: OfSizes, targets: Sequence[Target]) -> list[int]:
    """Compile a bundle whose extents are open, known only when it is called.

    Args:
        count: the number of these extents.
        record: returns the results of a function for fields of such extents, which are dynamic.

    Returns:
        The least and the most that they may be.

    Raises:
        SemanticError: a kernel is compiled for each size, or the function depends on sizes otherwise.
    """

    def recorded(sizes: Sizes) -> writing.Recorded:
        return _recorded(name, *record(sizes), values)

    values = stand_ins(count)
    return writing.write(path, recorded(values), targets, recorded)


def _recorded(name: str, arguments: Mapping[str, Field], results: Results, sizes: Sizes) -> writing.Recorded:
    what = program([f.node for f in (results if isinstance(results, tuple) else (results,))])
    number = {node: v for v, node in what.leaves.items()}
    parameters = tuple((name, number.get(f.node, -1), f.type) for name, f in arguments.items())
    passed = {v for _, v, _ in parameters}
    leaves = {v: leaf for v, leaf in what.leaves.items() if isinstance(leaf, Leaf) and v not in passed}
    values = arrays(*(Field.of(leaf) for leaf in leaves.values()))
    scalars = frozenset(v for v, leaf in leaves.items() if leaf.by_value)
    constants = dict(zip(leaves, values, strict=True))
    kinds = tuple(f.type for f in (results if isinstance(results, tuple) else (results,)))
    return writing.Interface(name, parameters, constants, scalars, kinds, isinstance(results, tuple), sizes), what


_Ready = tuple[writing.Interface, Prepared, dict[int, Argument]]


class Bundle(NearNames):
    """A compiled function, from `load_bundle`: called as the function that it was made of, with arrays or with Fields.

    It computes when it is called, so graphs, pipelines and iterations cannot contain bundles.

    Attributes:
        name: name of the function.
        targets: the targets with code, as "opencl", "opencl:cpu" and "cuda:sm_90".
        types: the FieldType of each argument, by name; for open extents a text, as "?0×?1 float32": extents with one number
            are equal.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents, self._interface = contents, contents.interface
        self._ready: BoundedCache[Any, _Ready] = BoundedCache(SIZES_KEPT)
        self.name = self._interface.name
        self.targets = tuple(contents.code)
        self._types = {name: kind for name, _, kind in self._interface.arguments}
        self.types = {name: self._shown(name) for name in self._types}
        names = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in self.types]
        self.signature = inspect.Signature(names)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._contents,)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}: {kind}" for name, kind in self.types.items())
        return f"<Bundle {self.name}({arguments}) for {', '.join(self.targets)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it on the current device.

        Returns:
            Arrays for arrays, Fields (whose values stay on the device) for Fields; a tuple where the function gave one.

        Raises:
            SemanticError: other arguments than the bundle was made for.
            DeviceError: it has no code for the device.
        """
        try:
            values = bind(self.signature, args, kwargs).arguments
        except TypeError as wrong:
            raise UnsupportedError(f"bundle `{self.name}`: {wrong}") from None
        sizes = self._sizes(values)
        for name, value in values.items():
            values[name] = self._checked(name, value, self._type(name, sizes))
        fields = [value for value in values.values() if isinstance(value, Field)]
        if fields and len(fields) < len(values):
            raise SemanticError(f"bundle `{self.name}` gets Fields and arrays; give it one of them")
        if fields and open_graphs():
            raise SemanticError(f"bundle `{self.name}` {AT_ONCE}")
        results = self._run(current(), values, sizes, bool(fields))
        return tuple(results) if self._interface.several else results[0]

    def _shown(self, name: str) -> FieldType | str:
        kind, positions = self._types[name], self._contents.positions[name]
        if max(positions, default=-1) < 0:
            return kind
        extents = [f"?{k}" if k >= 0 else str(n) for k, n in zip(positions, kind.array_shape, strict=True)]
        return f"{'×'.join(extents)} {kind.array_dtype}"

    def _sizes(self, values: Mapping[str, Any]) -> Sizes:
        """The values of the open extents in these arguments."""
        extents: dict[int, tuple[int, str]] = {}
        for name, positions in self._contents.positions.items():
            value = values[name]
            shape = value.type.array_shape if isinstance(value, Field) else getattr(value, "shape", ())
            if max(positions, default=-1) >= 0 and len(shape) != len(positions):
                actual = f"of shape {tuple(shape)}" if shape else described(value)
                raise SemanticError(
                    f"argument `{name}` of bundle `{self.name}` is {self.types[name]}, an array or a Field, not {actual}"
                )
            for k, n in zip(positions, shape, strict=False):
                if k >= 0 and extents.setdefault(k, (n, name))[0] != n:
                    raise SemanticError(
                        f"bundle `{self.name}`: extent ?{k} must be the same everywhere: it is {extents[k][0]} in "
                        f"`{extents[k][1]}` and {n} in `{name}`"
                    )
        least, most = self._contents.range
        for n, name in extents.values():
            if not least <= n <= most:
                raise SemanticError(
                    f"bundle `{self.name}` is made for extents from {least} to {most} where they are open, and `{name}` has {n}; "
                    "make a bundle of this size"
                )
        return tuple(extents[k][0] for k in range(len(extents)))

    def _type(self, name: str, sizes: Sizes) -> FieldType:
        """The type of an argument for these sizes."""
        kind = self._types[name]
        if not sizes:
            return kind
        shape = zip(self._contents.positions[name], kind.field_shape, strict=False)
        return kind.replace(field_shape=tuple(n if k < 0 else sizes[k] for k, n in shape))

    def _checked(self, name: str, value: Any, kind: FieldType) -> Any:
        """Check an argument; a number for a 0D field becomes an array."""
        number = value.item() if isinstance(value, np.generic) else value
        if isinstance(number, (bool, int, float)) and not kind.array_shape and kind.element.holds(number):
            return np.array(number, kind.array_dtype)
        if isinstance(value, np.generic):
            value = np.asarray(value)
        dtype = kind.array_dtype
        if isinstance(value, Field):
            same, actual = value.type == kind, f"a {value.type} field"
        elif isinstance(value, np.ndarray):
            same = value.shape == tuple(kind.array_shape) and value.dtype == dtype
            actual = f"{value.dtype} of shape {value.shape}"
        else:
            same, actual = False, described(value)
        if not same:
            raise SemanticError(
                f"argument `{name}` of bundle `{self.name}` is a {kind} field, or an array of {dtype} of shape "
                f"{tuple(kind.array_shape)}, not {actual}; bundles are made for one type"
            )
        return value

    def _run(self, backend: Backend, arguments: Mapping[str, Any], sizes: Sizes, as_fields: bool) -> list[Any]:
        interface, prepared, constants = self._ready.find((backend, sizes), partial(self._of, backend, sizes))
        what = prepared.plan.program
        values = prepared.run(constants | self._passed(backend, arguments, interface))
        results = [(kind, values[v]) for v, kind in zip(what.results, interface.results, strict=True)]
        if not as_fields:
            return [download(kind, value, backend) for kind, value in results]
        return [_kept(kind, boxed(kind.folded, value, backend), backend) for kind, value in results]

    def _of(self, backend: Backend, sizes: Sizes) -> _Ready:
        """The interface, the compiled plan and the constants for a device and these sizes."""
        interface, plan = self._interface, plan_on(self._contents, backend.target)
        if sizes:
            interface, plan = self._contents.at(sizes, plan)
        return interface, Prepared(backend, plan), self._constants(backend, plan.program.types)

    def _passed(
        self, backend: Backend, arguments: Mapping[str, Any], interface: writing.Interface
    ) -> dict[int, Argument]:
        """Arguments on the device, by number."""
        numbers = {name: v for name, v, _ in interface.arguments if v >= 0}
        kinds = {name: kind.folded for name, _, kind in interface.arguments}
        fields = {numbers[n]: f.node for n, f in arguments.items() if n in numbers and isinstance(f, Field)}
        try:
            values: dict[int, Argument] = dict(zip(fields, compute(list(fields.values()), backend), strict=True))
        except SemanticError as unknown:
            raise SemanticError(f"bundle `{self.name}` {AT_ONCE}; {unknown.message}") from None
        for name, array in arguments.items():
            if name in numbers and not isinstance(array, Field):
                values[numbers[name]] = backend.upload(kinds[name], planes_of(kinds[name], array))
        return values

    def _constants(self, backend: Backend, types: Mapping[int, FieldType]) -> dict[int, Argument]:
        values: dict[int, Argument] = {}
        for v, array in self._interface.constants.items():
            planes = planes_of(types[v], array)
            by_value = v in self._interface.scalars
            values[v] = tuple(planes.reshape(-1).tolist()) if by_value else backend.upload(types[v], planes)
        return values


def _kept(kind: FieldType, value: Buffer, backend: Backend) -> Field:
    """A field, of a type that users see, with a value on the device."""
    return Field.of(Leaf(kind.folded, Evaluated(kind.folded, backend, value)), kind=kind)


@hinted
def load_bundle(path: Path) -> Bundle:
    """Read a file that `gpuop compile` wrote: a function that runs on the current device, without recording or planning.

    A bundle is a program: its kernels may do whatever kernels can, so load only bundles that you trust. Its data are checked.

    Args:
        path: of the file.

    Returns:
        A Bundle.

    Raises:
        SemanticError: it is no such file, it is damaged, or its description of kernels is impossible.
    """
    return Bundle(read(path))
