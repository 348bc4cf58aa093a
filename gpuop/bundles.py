"""Bundles: what fields compute, compiled for several targets into one file, and called without recording or planning."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpuop.dsl.field import Field
from gpuop.errors import SemanticError, described
from gpuop.fusion.graph import program
from gpuop.fusion.plan import plan
from gpuop.ir.graph import Leaf
from gpuop.ir.target import Target
from gpuop.runtime import bundle
from gpuop.runtime.backend import Argument, Backend, download, planes_of
from gpuop.runtime.bundle import Code, Contents, code_for
from gpuop.runtime.devices import current
from gpuop.runtime.files import Path
from gpuop.session import Evaluated, arrays, boxed, compute


def save_bundle(
    path: Path, name: str, arguments: Mapping[str, Field], results: Field | tuple[Field, ...], targets: Sequence[Target]
) -> None:
    """Compile what gives fields from others, for targets, into a file. What else they are made of becomes constant.

    Raises:
        SemanticError: part of it runs on the host, or repeats.
        CompileError, DeviceError: CUDA's compiler refuses a kernel, or there is none for an architecture.
    """
    wanted = results if isinstance(results, tuple) else (results,)
    what = program([f.node for f in wanted])
    number = {node: v for v, node in what.leaves.items()}
    given = {name: number.get(f.node, -1) for name, f in arguments.items()}  # -1: nothing depends on it
    leaves = {v: leaf for v, leaf in what.leaves.items() if isinstance(leaf, Leaf) and v not in given.values()}
    values = zip(leaves, arrays(*(Field.of(leaf) for leaf in leaves.values())), strict=True)
    types = {v: what.types[v] for v in (*leaves, *what.wanted, *given.values()) if v >= 0}
    bundle.write(
        path,
        Contents(
            name,
            tuple((argument, v, arguments[argument].type) for argument, v in given.items()),
            dict(values),
            types,
            frozenset(v for v, leaf in leaves.items() if leaf.by_value),
            what.wanted,
            isinstance(results, tuple),
            bundle.compiled(plan(what), targets),
        ),
    )


class Bundle:
    """What `load_bundle` gives: called as the function that it was made of, with arrays or with Fields.

    Attributes:
        name: of the function.
        targets: what it has code for, as "opencl" and "cuda:sm_90".
        types: the FieldType of each argument, by name.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._programs: dict[Backend, tuple[Code, list[Any]]] = {}
        self.name = contents.name
        self.targets = tuple(contents.code)
        self.types = {name: kind for name, _, kind in contents.arguments}
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
            given = self.signature.bind(*args, **kwargs).arguments
        except TypeError as wrong:
            raise SemanticError(f"bundle `{self.name}`: {wrong}") from None
        for name, value in given.items():
            self._check(name, value)
        fields = [value for value in given.values() if isinstance(value, Field)]
        if fields and len(fields) < len(given):
            raise SemanticError(f"bundle `{self.name}` gets Fields and arrays; give it one of them")
        backend = current()
        values = self._run(backend, given)
        kinds = [self._contents.types[v] for v in self._contents.results]
        pairs = list(zip(kinds, values, strict=True))
        results: list[Any]
        if fields:
            results = [Field.of(Leaf(kind, Evaluated(backend, boxed(kind, value, backend)))) for kind, value in pairs]
        else:
            results = [download(kind, value, backend) for kind, value in pairs]
        return tuple(results) if self._contents.several else results[0]

    def _check(self, name: str, value: Any) -> None:
        kind = self.types[name]
        wanted = "uint8" if kind.dtype == "unorm8" else kind.dtype
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

    def _passed(self, backend: Backend, given: Mapping[str, Any]) -> dict[int, Argument]:
        """Arguments and constants on the device, by number."""
        contents = self._contents
        numbers = {name: v for name, v, _ in contents.arguments if v >= 0}
        fields = {numbers[n]: f.node for n, f in given.items() if n in numbers and isinstance(f, Field)}
        data = {numbers[n]: a for n, a in given.items() if n in numbers and not isinstance(a, Field)}
        values: dict[int, Argument] = dict(zip(fields, compute(list(fields.values()), backend), strict=True))
        for v, array in {**contents.constants, **data}.items():
            kind = contents.types[v]
            planes = planes_of(kind, array)
            values[v] = tuple(planes.reshape(-1).tolist()) if v in contents.scalars else backend.upload(kind, planes)
        return values

    def _loaded(self, backend: Backend) -> tuple[Code, list[Any]]:
        """The code for a device, and its programs there."""
        if backend not in self._programs:
            code, kind = code_for(self._contents, backend.target)
            loaded = [backend.load(step.source, step.binaries[kind] if kind else None) for step in code.steps]
            self._programs[backend] = code, loaded
        return self._programs[backend]

    def _run(self, backend: Backend, given: Mapping[str, Any]) -> list[Argument]:
        code, programs = self._loaded(backend)
        values = self._passed(backend, given)
        buffers = [backend.empty(kind) for kind in code.buffers]
        values.update({v: buffers[n] for v, n in code.buffer_of.items()})
        for step, loaded in zip(code.steps, programs, strict=True):
            backend.launch((backend.bind(loaded, [values[v] for v in step.values]).run,))
        return [values[v] for v in self._contents.results]


def load_bundle(path: Path) -> Bundle:
    """Read a file that `gpuop compile` wrote: a function that runs on the current device, without recording or planning.

    Raises:
        SemanticError: it is no such file, or it is damaged.
    """
    return Bundle(bundle.read(path))
