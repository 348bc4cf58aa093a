"""Every class of nodes is taken apart and put together as the types of its fields say, and every statement says its effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from itertools import count
from typing import Any, ClassVar, get_args, get_type_hints

import pytest

from gpuop.fusion.thread_per_element import is_plain
from gpuop.ir import nodes
from gpuop.ir.build import constant
from gpuop.ir.children import CHILDREN, children_of
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import (
    Array,
    Block,
    Combination,
    Comment,
    Const,
    Declare,
    Effect,
    Expr,
    FieldParam,
    Load,
    Ref,
    Stmt,
    Var,
    Wide,
    Write,
)
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import FLOAT, INT, FieldType, Shape, Type
from gpuop.ir.visit import (
    Copier,
    blocks,
    changed,
    effects,
    map_blocks,
    map_values,
    operands,
    values,
    walk,
    with_operands,
)
from gpuop.passes.inline import is_pure

EXPRESSIONS, STATEMENTS = get_args(Expr), get_args(Stmt)
NUMBER = Type(INT)
LEAVES = {  # what a field of a type holds here, made of the number of a leaf
    Expr: lambda n: Ref(n),
    tuple[Expr, ...]: lambda n: (Ref(n), Ref(n + 100)),
    Block: lambda n: (Comment(str(n)),),
    Var: lambda n: Var(str(n), NUMBER),
    Array: lambda n: Array(str(n), NUMBER, ()),
    FieldParam: lambda n: FieldParam(str(n), FieldType(3)),
}


def leaf_of(hint: Any) -> Callable[[int], Any] | None:
    """The function that makes a child for a field of this type; None if it holds no child."""
    types = set(get_args(hint)) or {hint}
    for kind, make in LEAVES.items():
        if hint == kind or hint == kind | None or (kind in (Var, Array, FieldParam) and kind in types):
            return make
    return None


def built(cls: type, first: int = 0) -> tuple[Any, dict[str, Any]]:
    """A node with a leaf of its own in each field that may hold one, and these leaves."""
    hints, number = get_type_hints(cls), count(first)
    makers = {f.name: leaf_of(hints[f.name]) for f in fields(cls)}
    leaves = {name: make(next(number)) for name, make in makers.items() if make is not None}
    return cls(**{f.name: leaves.get(f.name) for f in fields(cls)}), leaves


def flat(leaves: dict[str, Any], kinds: type | tuple[type, ...]) -> Iterator[Any]:
    for leaf in leaves.values():
        values = leaf if isinstance(leaf, tuple) else (leaf,)
        if isinstance(values[0], kinds):
            yield from values


@pytest.mark.parametrize("cls", [*EXPRESSIONS, *STATEMENTS])
def test_every_child_of_a_node_is_visited_and_replaced(cls: type) -> None:
    node, leaves = built(cls)
    other, expected = built(cls, 1000)
    symbols = [v for v in leaves.values() if isinstance(v, (Var, Array, FieldParam))]
    new = [v for v in expected.values() if isinstance(v, (Var, Array, FieldParam))]
    mapped = {id(a): b for a, b in zip(flat(leaves, Ref), flat(expected, Ref), strict=True)}
    choices = values(node) if cls in STATEMENTS else operands(node)
    assert list(choices) == list(flat(leaves, Ref))
    done = (map_values if cls in STATEMENTS else with_operands)(node, lambda e: mapped[id(e)])
    if cls in STATEMENTS:
        inner = [v for v in leaves.values() if isinstance(v, tuple) and isinstance(v[0], Comment)]
        then = [v for v in expected.values() if isinstance(v, tuple) and isinstance(v[0], Comment)]
        assert list(blocks(node)) == inner
        done = map_blocks(done, lambda b: then[inner.index(b)])
    done = CHILDREN[cls].map_symbols(done, lambda s: new[symbols.index(s)])
    assert done == other


@pytest.mark.parametrize("cls", [*EXPRESSIONS, *STATEMENTS])
def test_a_node_stays_the_same_object_where_nothing_changes(cls: type) -> None:
    node, _ = built(cls)
    assert (map_values if cls in STATEMENTS else with_operands)(node, lambda e: e) is node
    assert CHILDREN[cls].map_symbols(node, lambda s: s) is node
    assert cls in EXPRESSIONS or map_blocks(node, lambda b: b) is node


def test_all_dataclasses_of_the_ir_are_in_its_unions() -> None:
    kinds = {cls for cls in vars(nodes).values() if is_dataclass(cls) and cls.__module__ == nodes.__name__}
    assert kinds - {Var, FieldParam, Array, Combination} == {*EXPRESSIONS, *STATEMENTS} - {TargetConst}


def test_every_statement_says_itself_what_its_effect_is() -> None:
    assert all(isinstance(vars(cls).get("effect"), Effect) for cls in STATEMENTS)


# --- kinds that nobody knows ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shout:
    """A statement that the host hears."""

    effect: ClassVar[Effect] = Effect.HOST
    value: Expr


@dataclass(frozen=True)
class Rows:
    """An expression whose operands would not be found."""

    rows: tuple[tuple[Expr, ...], ...]


def test_an_unknown_class_is_no_leaf() -> None:
    for visit in (operands, values, blocks):
        with pytest.raises(TypeError, match="Shout is no class of nodes"):
            visit(Shout(constant(1, INT)))
    with pytest.raises(TypeError, match=r"Rows\.rows: nodes in a .* would not be visited"):
        children_of(Rows)


def kernel(*more: Any) -> Kernel:
    param, out = FieldParam("f", FieldType(8, (), "int32")), FieldParam("out", FieldType(8, (), "int32"))
    x = Var("x", NUMBER)
    body = (nodes.Let(x, nodes.Read(param, NUMBER)), *more, Write(out, Ref(x)))
    return Kernel(name="k", inputs=(param,), outputs=(Output(out),), domain=Domain(Shape(8)), body=body)


def test_a_new_kind_of_effect_is_neither_repeated_nor_spread_over_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHILDREN, Shout, children_of(Shout))
    plain, shouting = kernel(), kernel(Shout(constant(1, INT)))
    assert is_pure(plain) and is_plain(plain) and not effects(plain.body)
    assert not is_pure(shouting) and not is_plain(shouting) and effects(shouting.body) is Effect.HOST


def test_the_effects_of_a_block_are_those_of_all_its_statements() -> None:
    loud = (nodes.Print("", ()), nodes.Barrier("local"))
    assert effects((nodes.If(Const(True, NUMBER), (), loud),)) == Effect.HOST | Effect.EVERY_RUN | Effect.THREADS
    assert not kernel(nodes.Assert(Const(True, NUMBER), "")).acts
    assert kernel(loud[0]).acts


# --- copies -----------------------------------------------------------------------------------------------------------


def test_copies_of_wide_accesses_use_the_copies_of_their_arrays() -> None:
    field, other = (FieldParam(name, FieldType(8)) for name in "ab")
    array = Array("lanes", Type(FLOAT), (4,))
    block = (Declare(array), Wide(field, array, True, (constant(0, INT),)))
    result, wide = Copier(block, fields={field: other}).copy()
    assert result.array is not array
    assert wide == Wide(other, result.array, True, (constant(0, INT),))
    assert changed(block) == {array}


def test_a_copy_has_symbols_of_its_own() -> None:
    x, given = Var("x", NUMBER), Var("given", NUMBER)
    array = Array("a", NUMBER, (2,))
    block = (Declare(array), nodes.Let(x, Load(array, (Ref(given),), NUMBER)), nodes.Store(array, (Ref(x),), Ref(x)))
    copied = Copier(block, {given: constant(1, INT)}).copy()
    (declared, let, store), used = copied, {e for s in walk(copied) for e in values(s) if isinstance(e, Ref)}
    assert let.value == Load(declared.array, (constant(1, INT),), NUMBER)
    assert used == {Ref(let.var)} and let.var is not x and store.memory is declared.array is not array
