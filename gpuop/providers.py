"""Functions that provide the services of `gpuop/dsl/fields/services.py`.

Each loads its module at first use: a program that only records loads none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array, Making
from gpuop.ir.types import FieldType
from gpuop.ir.values import Node

if TYPE_CHECKING:
    from gpuop.dsl.fields.services import Services


class Providers:
    """Services."""

    def evaluate(self, *fields: Field) -> list[Array]:
        from gpuop.engine.evaluate import arrays

        return arrays(*fields)

    def fetch(self, field: Field, out: Array | None) -> Any:
        from gpuop.engine.async_evaluation import fetch

        return fetch(field, out)

    def keep(self, field: Field) -> Field:
        from gpuop.engine.evaluate import keep

        return keep(field)

    def buffer(self, field: Field) -> Any:
        from gpuop.engine.evaluate import buffer

        return buffer(field)

    def source(self, fields: Sequence[Field], target: str | None, form: str) -> str:
        from gpuop.engine.dump import source

        return source(fields, target, form)

    def adopt(self, array: Any, make: Making, copy: bool, name: str) -> tuple[Node, FieldType]:
        from gpuop.engine.interop import adopt

        return adopt(array, make, copy, name)

    def export(self, field: Field) -> Any:
        from gpuop.engine.interop import export

        return export(field)

    def own(self, node: Node) -> Node:
        from gpuop.engine.interop import own

        return own(node)

    def set_next(self, state: Field, value: Any) -> None:
        from gpuop.engine.graphs.active_graph import set_next

        set_next(state, value)

    def device_in_use(self) -> str:
        from gpuop.engine.interop import device_in_use

        return device_in_use()

    def array_namespace(self, api_version: str | None) -> Any:
        from gpuop.array_namespace import of_version

        return of_version(api_version)

    def show(self, field: Field) -> str:
        from gpuop.engine.show.html import show

        return show(field)


PROVIDERS: Services = Providers()
