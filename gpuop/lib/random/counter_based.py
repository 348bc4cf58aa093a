"""Counter-based random words: functions of the key and the point alone, so they are the same however a field is fused.

Four neighbours along the last axis of the grid, or four elements of a tensor, share the four words that `_random` computes for one
counter if each value takes one word; if it takes two, two neighbours share them.
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
    """The random words of one value.

    Args:
        key: the key, as a value of the kernel.
        counter: the first three words of its counters; the last one is the iteration.
        first: the index of its first word among the four of a counter.
        count: the number of its words.
    """

    def __init__(self, key: Any, counter: Sequence[Any], first: Any, count: int) -> None:
        self.key, self.counter, self.first, self.count = key, counter, first, count

    def of_turn(self, turn: Any = 0) -> list[Any]:
        """The words of an iteration of rejection sampling."""
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


Value = Callable[[Words, list[Any]], Any]  # takes a value's words, and the values of other fields there


def drawn(
    name: str, key: Any, kind: FieldType, count: int, value: Value, key_parts: Any = (), fields: Sequence[Field] = ()
) -> Field:
    """A field of random values.

    Args:
        count: words of a value: 1, 2 or 4.
        value: computes the value from its words.
        told: the constants that `value` depends on, for the cache key.
        fields: fields that `value` reads at each point, of this type or 0D.
    """
    source = a_key(f"random.{name}", key)
    with exactly():  # numbers do not depend on the precision that users choose
        body = _body(source, kind, count, value, fields)
        return library_call(name, (kind,), [source, *fields], body, (count, key_parts))[0]


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
    """The type of a result, from a FieldType or from the grid's shape and a dtype; refuses dtypes of other kinds."""
    if isinstance(shape, FieldType):
        kind = shape if dtype is None else shape.replace(dtype=dtype)
    else:
        kind = FieldType(shape, (), otherwise if dtype is None else dtype)
    if kind.dtype == "unorm8" or kind.element.kind not in kinds:
        wanted = " or ".join({"f": "floats", "i": "integers", "u": "unsigned integers"}[each] for each in kinds[:2])
        raise SemanticError(f"random.{name} gives {wanted}, not {kind.dtype}; `.astype` converts")
    return kind


def scaled(made: Field, by: Any, offset: Any = 0) -> Field:
    """The field times a number or a field, plus an offset, in its own dtype."""
    dtype = made.dtype
    if isinstance(by, Field) or by != 1:
        made = made * by
    if isinstance(offset, Field) or offset != 0:
        made = made + offset
    return made.astype(dtype)
