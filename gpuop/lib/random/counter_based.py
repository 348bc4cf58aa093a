"""Random words at each place of a field, by the key, the place and nothing else: so they are the same wherever it is fused.

Four neighbours along the last axis of the grid, or four elements of a tensor, share what `_random` gives for one counter: of
values that take one word each. Of those that take two, two share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import is_big_tensor
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.recorder.precisions import exactly
from gpuop.ir.types import FieldType
from gpuop.lib.random.keys import a_key
from gpuop.ops.layout.gather import flat, own_place

BLOCK = 4  # words of a counter


class Words:
    """The words of one value.

    Args:
        key: as kernels have it.
        counter: the first three words of its counters; the last one counts turns.
        first: where its words begin among the four of a counter.
        count: how many it takes.
    """

    def __init__(self, key: Any, counter: Sequence[Any], first: Any, count: int) -> None:
        self.key, self.counter, self.first, self.count = key, counter, first, count

    def of_turn(self, turn: Any = 0) -> list[Any]:
        """Words for another try, of values that are accepted or rejected."""
        words = k._random(self.key, k._uint4(*map(_word, self.counter), _word(turn)))
        parts = [words[n] for n in range(BLOCK)]
        if isinstance(self.first, int):
            return parts[self.first : self.first + self.count]
        found = parts[: self.count]
        for start in range(self.count, BLOCK, self.count):
            chosen = self.first == start
            found = [k._where(chosen, parts[start + n], word) for n, word in enumerate(found)]
        return found


def _word(number: Any) -> Any:
    return number if isinstance(number, int) else k._convert_uint(number)


Value = Callable[[Words, list[Any]], Any]  # of a value's words, and of what other fields have at its place


def drawn(
    name: str, key: Any, kind: FieldType, count: int, value: Value, told: Any = (), fields: Sequence[Field] = ()
) -> Field:
    """A field of random values.

    Args:
        count: words of a value: 1, 2 or 4.
        value: what is computed of the words.
        told: all that it depends on besides.
        fields: what it depends on at each place, of this type or 0D.
    """
    given = a_key(f"random.{name}", key)
    with exactly():  # numbers are the same whatever their users ask for
        body = _body(given, kind, count, value, fields)
        return library_call(name, (kind,), [given, *fields], body, (count, told))[0]


def _body(key: Field, kind: FieldType, count: int, value: Value, fields: Sequence[Field]) -> Callable[[], None]:
    def body() -> None:
        seed, own = k._readTensor(key), own_place(len(kind.field_shape))
        rows, column = flat(own[:-1], kind.field_shape[:-1]), own[-1] if own else 0
        each = BLOCK // count

        def at(element: Any) -> Any:
            if kind.planes > 1:
                words = Words(seed, (column, rows, _quotient(element, each)), element % each * count, count)
            else:
                words = Words(seed, (_quotient(column, each), rows, 0), column % each * count, count)
            return value(words, [_there(field, element) for field in fields])

        if is_big_tensor(kind):
            with k._forEachTensorElement(kind.planes):
                k._writeTensorElement(k._out0, at(k._tensorElement))
        else:
            for element in range(kind.planes):
                k._writeTensorElement(k._out0, at(element), element)

    return body


def _quotient(number: Any, by: int) -> Any:
    return number // by if isinstance(number, int) else number / by


def _there(field: Field, element: Any) -> Any:
    return k._readTensorElement(field, element) if field.type.planes > 1 else k._readTensor(field)


def declared(name: str, shape: Any, dtype: Any, otherwise: str, kinds: str) -> FieldType:
    """The type of a result: a FieldType, or the grid's shape and a dtype of some kinds."""
    if isinstance(shape, FieldType):
        kind = shape if dtype is None else shape.replace(dtype=dtype)
    else:
        kind = FieldType(shape, (), otherwise if dtype is None else dtype)
    if kind.dtype == "unorm8" or kind.element.kind not in kinds:
        wanted = " or ".join({"f": "floats", "i": "integers", "u": "unsigned integers"}[each] for each in kinds[:2])
        raise SemanticError(f"random.{name} gives {wanted}, not {kind.dtype}; `.astype` converts")
    return kind


def scaled(made: Field, by: Any, offset: Any = 0) -> Field:
    """The field times a number or a field, and another one more, in its own dtype."""
    dtype = made.dtype
    if isinstance(by, Field) or by != 1:
        made = made * by
    if isinstance(offset, Field) or offset != 0:
        made = made + offset
    return made.astype(dtype)
