"""Entries of a batch: what a mapped function gets for its arguments, and what becomes of its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array, Made, Making, Placeholder
from gpuop.dsl.fields.sources import Deferred
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node, calls
from gpuop.ops.layout.layouts import broadcast_to, moveaxis
from gpuop.ops.layout.shape_functions import with_tensor_order
from gpuop.transforms.batch_calls import entry_of, over_batch
from gpuop.transforms.batch_kernel import batched_type

CONTAINERS = (tuple, list)


def in_words(what: str, shape: Sequence[int], axis: int) -> int:
    """The number of a mapped axis; SemanticError, beginning with `what`, if there is none."""
    if not -len(shape) <= axis < len(shape):
        remedy = (
            "give `in_axes=` None for it, and it is the same for all entries" if not shape else "choose another axis"
        )
        raise SemanticError(f"{what} has the shape {tuple(shape)}, and so no axis {axis} to map over: {remedy}")
    return axis % len(shape)


class Batch:
    """The entries of one call.

    Attributes:
        count: the number of entries; None as long as no argument is mapped.
    """

    def __init__(self, name: str) -> None:
        self.name = f"vmap of `{name}`"
        self.count: int | None = None
        self.first = ""  # the argument that says how many entries there are
        self.mapped: dict[Node, Node] = {}
        self.arrays: list[tuple[Placeholder, Placeholder]] = []  # what stands for an entry, and for the whole

    # --- arguments ------------------------------------------------------------------------------------------------

    def entry(self, value: Any, axis: Any, what: str) -> Any:
        """The entry of an argument, for which Fields and placeholders stand."""
        if isinstance(value, dict):
            return {key: self.entry(member, axis, f"{what}[{key!r}]") for key, member in value.items()}
        if isinstance(value, CONTAINERS):
            axes = axis if isinstance(axis, CONTAINERS) else (axis,) * len(value)
            if len(axes) != len(value):
                raise SemanticError(
                    f"{self.name}: {what} has {len(value)} members, and `in_axes=` has {len(axes)} for it"
                )
            members = enumerate(zip(value, axes, strict=True))
            return _like(value, [self.entry(member, each, f"{what}[{n}]") for n, (member, each) in members])
        if isinstance(axis, CONTAINERS):
            raise SemanticError(f"{self.name}: {what} is no tuple, and `in_axes=` has {len(axis)} axes for it")
        if axis is None or not isinstance(value, (Field, Placeholder)):
            return value
        shape = tuple(value.type.array_shape if isinstance(value, Field) else value.shape)
        n = in_words(f"{self.name}: {what}", shape, int(axis))
        self._check_extent(shape[n], what)
        return self._of_field(to_front(value, n)) if isinstance(value, Field) else self._of_array(value, n, what)

    def _check_extent(self, extent: int, what: str) -> None:
        if self.count is None:
            self.count, self.first = extent, what
        if self.count != extent:
            raise SemanticError(
                f"{self.name}: mapped axes have as many entries each: {self.first} has {self.count}, and {what} has {extent}"
            )

    def check(self) -> None:
        """Refuse a call without a mapped argument."""
        if self.count is None:
            raise SemanticError(
                f"{self.name}: none of its arguments is mapped: give a Field or an array, and for it an axis by `in_axes=`"
            )

    def _of_field(self, field: Field) -> Field:
        entry = entry_of(field)
        self.mapped[entry.node] = field.node
        return entry

    def _of_array(self, whole: Placeholder, axis: int, what: str) -> Placeholder:
        if axis != 0:
            raise SemanticError(
                f"{self.name}: {what} stands for an array of a pipeline, which is mapped over its first axis, not over axis "
                f"{axis}: make it a Field before, as `gp.ScalarField(array)`"
            )
        entry = replace(whole, shape=whole.shape[1:])
        self.arrays.append((entry, whole))
        return entry

    # --- results --------------------------------------------------------------------------------------------------

    def results(self, returned: Any, axes: Any) -> Any:
        """The results for all entries, along these axes, of those of an entry."""
        fields = list(self._fields(returned))
        nodes = [field.node for field in fields]
        read = (node for call in calls(nodes, self.mapped) for node in call.inputs)
        for node in dict.fromkeys((*nodes, *read)):
            self._add_array(node)
        assert self.count is not None
        values = over_batch(nodes, self.mapped, self.count)
        return self._of_all(returned, axes, values)

    def _fields(self, returned: Any) -> Any:
        for each in returned if isinstance(returned, CONTAINERS) else (returned,):
            if isinstance(each, CONTAINERS):
                yield from self._fields(each)
            elif isinstance(each, Field):
                yield each
            else:
                what = "an array argument as it is" if isinstance(each, Placeholder) else described(each)
                raise SemanticError(f"{self.name}: it returns {what}; it returns a Field, or a tuple or list of them")

    def _add_array(self, node: Node) -> None:
        """Add the whole array of a leaf that was made of an entry."""
        source = node.source if isinstance(node, Leaf) else None
        if not isinstance(source, Deferred) or node in self.mapped:
            return
        whole = next((whole for entry, whole in self.arrays if entry is source.placeholder), None)
        if whole is not None:
            kind = batched_type(source.kind, whole.shape[0])
            deferred = Deferred(whole, _of_each(source.make, kind), kind)
            self.mapped[node] = Leaf(kind.folded, deferred, name=node.name)

    def _of_all(self, returned: Any, axes: Any, values: dict[Node, Node]) -> Any:
        if isinstance(returned, CONTAINERS):
            each = axes if isinstance(axes, CONTAINERS) else (axes,) * len(returned)
            if len(each) != len(returned):
                raise SemanticError(f"{self.name}: it returns {len(returned)} results, and `out_axes=` has {len(each)}")
            return _like(returned, [self._of_all(r, a, values) for r, a in zip(returned, each, strict=True)])
        if isinstance(axes, CONTAINERS):
            raise SemanticError(f"{self.name}: it returns one result, and `out_axes=` has {len(axes)}")
        return self._of_one(returned, axes, values)

    def _of_one(self, field: Field, axis: int | None, values: dict[Node, Node]) -> Field:
        assert self.count is not None
        depends = field.node in values
        if axis is None:
            if depends:
                raise SemanticError(
                    f"{self.name}: a result depends on mapped arguments, so it has a value for each entry: `out_axes=` is an axis "
                    "for it, not None"
                )
            return field
        kind = batched_type(field.type, self.count)
        whole = Field.of(values[field.node], kind=kind) if depends else broadcast_to(field, tuple(kind.array_shape))
        count = len(kind.array_shape)
        if not -count <= axis < count:
            raise SemanticError(
                f"{self.name}: a result has {count} axes, and so none with the number {axis}, which `out_axes=` says"
            )
        return from_front(whole, axis % count)


def _like(container: Any, members: list[Any]) -> Any:
    """A list, a tuple or a named tuple of other members."""
    return type(container)(*members) if hasattr(container, "_fields") else type(container)(members)


def to_front(field: Field, axis: int) -> Field:
    """The field with an axis of its array as the first one of its grid."""
    grid, tensor = len(field.type.field_shape), len(field.type.tensor_shape)
    if axis < grid:
        return moveaxis(field, axis, 0) if axis else field
    return with_tensor_order(moveaxis(with_tensor_order(field, 0), axis, 0), tensor - 1)


def from_front(field: Field, axis: int) -> Field:
    """The field with the first axis of its grid elsewhere in its array; behind the grid it is one of the tensor."""
    grid, tensor = len(field.type.field_shape), len(field.type.tensor_shape)
    if axis < grid:
        return moveaxis(field, 0, axis) if axis else field
    return with_tensor_order(moveaxis(with_tensor_order(field, 0), 0, axis), tensor + 1)


def _of_each(make: Making, kind: FieldType) -> Making:
    """The conversion of an array of entries, as kernels know it, by that of one."""

    def convert(array: Array) -> Made:
        def values() -> Array:
            parts = [make(entry)[1]() for entry in array]
            shape = kind.folded.array_shape
            return np.stack(parts).reshape(shape) if parts else np.empty(shape, kind.array_dtype)

        return kind.folded, values

    return convert
