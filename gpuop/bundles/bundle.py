"""Bundles: what fields compute, compiled for several targets into one file, and called without recording or planning."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpuop.bundles import writing
from gpuop.bundles.reading import Contents, plan_on, read
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.decorated import bind
from gpuop.errors import SemanticError, described
from gpuop.evaluation import arrays, boxed, compute
from gpuop.fusion.program import program
from gpuop.graphs.defining import open_graphs
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf
from gpuop.runtime.base.backend import Argument, Backend, Buffer, download
from gpuop.runtime.base.device_sources import Evaluated
from gpuop.runtime.base.host_arrays import planes_of
from gpuop.runtime.devices import current
from gpuop.runtime.disk.files import Path
from gpuop.runtime.execute import Prepared

AT_ONCE = (
    "computes when it is called, so it is no part of a ComputeGraph, a pipeline or an iteration; make the bundle of a function "
    "that has all of it, or give it what was computed"
)


def save_bundle(
    path: Path, name: str, arguments: Mapping[str, Field], results: Field | tuple[Field, ...], targets: Sequence[Target]
) -> None:
    """Compile what gives fields from others, for targets, into a file. What else they are made of becomes constant.

    Raises:
        SemanticError: part of it runs on the host.
        CompileError, DeviceError: CUDA's compiler refuses a kernel, or there is none for an architecture.
    """
    what = program([f.node for f in (results if isinstance(results, tuple) else (results,))])
    number = {node: v for v, node in what.leaves.items()}
    given = tuple((name, number.get(f.node, -1), f.type) for name, f in arguments.items())
    taken = {v for _, v, _ in given}
    leaves = {v: leaf for v, leaf in what.leaves.items() if isinstance(leaf, Leaf) and v not in taken}
    values = arrays(*(Field.of(leaf) for leaf in leaves.values()))
    scalars = frozenset(v for v, leaf in leaves.items() if leaf.by_value)
    constants = dict(zip(leaves, values, strict=True))
    kinds = tuple(f.type for f in (results if isinstance(results, tuple) else (results,)))
    interface = writing.Interface(name, given, constants, scalars, kinds, isinstance(results, tuple))
    writing.write(path, interface, what, targets)


class Bundle:
    """What `load_bundle` gives: called as the function that it was made of, with arrays or with Fields.

    It computes when it is called: graphs, pipelines and iterations have no bundles in them.

    Attributes:
        name: of the function.
        targets: what it has code for, as "opencl", "opencl:cpu" and "cuda:sm_90".
        types: the FieldType of each argument, by name.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents, self._interface = contents, contents.interface
        self._ready: dict[Backend, tuple[Prepared, dict[int, Argument]]] = {}  # with the constants there
        self.name = self._interface.name
        self.targets = tuple(contents.code)
        self.types = {name: kind for name, _, kind in self._interface.arguments}
        names = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in self.types]
        self.signature = inspect.Signature(names)

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
            given = bind(self.signature, args, kwargs).arguments
        except TypeError as wrong:
            raise SemanticError(f"bundle `{self.name}`: {wrong}") from None
        for name, value in given.items():
            given[name] = self._checked(name, value)
        fields = [value for value in given.values() if isinstance(value, Field)]
        if fields and len(fields) < len(given):
            raise SemanticError(f"bundle `{self.name}` gets Fields and arrays; give it one of them")
        if fields and open_graphs():
            raise SemanticError(f"bundle `{self.name}` {AT_ONCE}")
        results = self._run(current(), given, bool(fields))
        return tuple(results) if self._interface.several else results[0]

    def _checked(self, name: str, value: Any) -> Any:
        """An argument; a number that a 0D field is to have as an array."""
        kind = self.types[name]
        number = value.item() if isinstance(value, np.generic) else value
        if isinstance(number, (bool, int, float)) and not kind.array_shape and kind.element.holds(number):
            return np.array(number, kind.array_dtype)
        if isinstance(value, np.generic):
            value = np.asarray(value)
        wanted = kind.array_dtype
        if isinstance(value, Field):
            same, found = value.type == kind, f"a {value.type} field"
        elif isinstance(value, np.ndarray):
            same = value.shape == tuple(kind.array_shape) and value.dtype == wanted
            found = f"{value.dtype} of shape {value.shape}"
        else:
            same, found = False, described(value)
        if not same:
            raise SemanticError(
                f"argument `{name}` of bundle `{self.name}` is a {kind} field, or an array of {wanted} of shape "
                f"{tuple(kind.array_shape)}, not {found}; bundles are made for one type"
            )
        return value

    def _run(self, backend: Backend, given: Mapping[str, Any], as_fields: bool) -> list[Any]:
        if backend not in self._ready:
            ready = Prepared(backend, plan_on(self._contents, backend.target))
            self._ready[backend] = ready, self._constants(backend, ready.plan.program.types)
        prepared, constants = self._ready[backend]
        what = prepared.plan.program
        values = prepared.run(constants | self._passed(backend, given))
        results = [(kind, values[v]) for v, kind in zip(what.wanted, self._interface.results, strict=True)]
        if not as_fields:
            return [download(kind, value, backend) for kind, value in results]
        return [_kept(kind, boxed(kind.folded, value, backend), backend) for kind, value in results]

    def _passed(self, backend: Backend, given: Mapping[str, Any]) -> dict[int, Argument]:
        """Arguments on the device, by number."""
        numbers = {name: v for name, v, _ in self._interface.arguments if v >= 0}
        fields = {numbers[n]: f.node for n, f in given.items() if n in numbers and isinstance(f, Field)}
        try:
            values: dict[int, Argument] = dict(zip(fields, compute(list(fields.values()), backend), strict=True))
        except SemanticError as unknown:
            raise SemanticError(f"bundle `{self.name}` {AT_ONCE}; {unknown.message}") from None
        for name, array in given.items():
            if name in numbers and not isinstance(array, Field):
                kind = self.types[name].folded
                values[numbers[name]] = backend.upload(kind, planes_of(kind, array))
        return values

    def _constants(self, backend: Backend, types: Mapping[int, FieldType]) -> dict[int, Argument]:
        values: dict[int, Argument] = {}
        for v, array in self._interface.constants.items():
            planes = planes_of(types[v], array)
            by_value = v in self._interface.scalars
            values[v] = tuple(planes.reshape(-1).tolist()) if by_value else backend.upload(types[v], planes)
        return values


def _kept(kind: FieldType, value: Buffer, backend: Backend) -> Field:
    """A field of a type that users see, of what is on the device."""
    return Field.of(Leaf(kind.folded, Evaluated(kind.folded, backend, value)), kind=kind)


def load_bundle(path: Path) -> Bundle:
    """Read a file that `gpuop compile` wrote: a function that runs on the current device, without recording or planning.

    A bundle is a program: its kernels may do whatever kernels can, so load those that you trust. What it says of them is checked.

    Args:
        path: of the file.

    Returns:
        A Bundle.

    Raises:
        SemanticError: it is no such file, it is damaged, or what it says of its kernels cannot be.
    """
    return Bundle(read(path))
