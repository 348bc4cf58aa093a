"""Keys of random numbers: 64 bits each; new keys are derived by Philox 4×32-10 too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import Parameter, is_big_tensor
from gpuop.dsl.fields.from_arrays import Placeholder
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.recorder.precisions import exactly
from gpuop.dsl.recorder.recorder import recording
from gpuop.ir.expansions.random import MULTIPLIERS, ROUNDS, STEPS
from gpuop.ir.types import FieldType, is_integer
from gpuop.ops.layout.gather import flat, own_place

KEY = FieldType((), 2, "uint32")
# The last words of counters from which keys are derived; those of numbers count iterations from 0.
SPLIT, FOLDED = 2**32 - 1, 2**32 - 2
WORD = 2**32 - 1


class Key(Parameter):
    """A key with a value on the host: two words, passed to kernels by value, so all keys share kernels."""

    __slots__ = ("words",)
    words: tuple[int, int]

    def __init__(self, low: int, high: int) -> None:
        super().__init__(np.array([low, high], "uint32"))
        object.__setattr__(self, "words", (low, high))

    def __copy__(self) -> Key:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (*self.words, self.node.name)

    def set(self, value: Any) -> NoReturn:
        """Refuse assignment: keys do not change."""
        raise SemanticError("a key does not change: `gp.random.fold_in(key, n)` gives another one")


def _restored(low: int, high: int, name: str) -> Key:
    result = Key(low, high)
    result.name = name
    return result


def key(seed: Any) -> Field:
    """A key, from which random numbers are computed: the same key gives the same numbers on all devices.

    Args:
        seed: an integer, of which the low 64 bits are used; or a 0D Field of integers.

    Returns:
        A key: a 0D field of two uint32, which is passed to kernels by value.

    Raises:
        SemanticError: the seed is no integer.
    """
    if isinstance(seed, Field):
        return _key_field("key", [_integer_field("key", seed)], lambda: _words(k._readTensor(seed)))
    number = _integer("key", seed)
    return Key(number & WORD, number >> 32 & WORD)


def split(key: Field, num: int = 2) -> tuple[Field, ...]:
    """New keys from one, whose numbers are independent: `key, own = gp.random.split(key)`.

    Args:
        key: a key as of `gp.random.key`; do not use it again.
        num: the number of keys.

    Returns:
        A tuple of keys.

    Raises:
        SemanticError: `key` is no key, or `num` no number of keys.
    """
    count = _integer("split", num)
    if count < 0:
        raise SemanticError(f"split: `num` is 0 or more, not {count}")
    return tuple(_derived("split", key, n, SPLIT) for n in range(count))


def fold_in(key: Field, data: Any) -> Field:
    """A new key from a key and a number, such as that of a frame: `own = gp.random.fold_in(key, n)`.

    Args:
        key: a key as of `gp.random.key`.
        data: an integer, of which the low 64 bits are used; or a 0D Field of integers, such as the step counter of a graph.

    Returns:
        A key.

    Raises:
        SemanticError: `key` is no key, or `data` no integer.
    """
    return _derived("fold_in", key, data, FOLDED)


def a_key(name: str, arg: Any) -> Field:
    """A key, checked."""
    if recording() is not None:
        raise SemanticError(
            f"{name}: gp.random makes fields outside of a kernel, which operators get as arguments; in a body `_random(key, "
            "counter)` makes numbers"
        )
    if isinstance(arg, Field) and arg.type == KEY:
        return arg
    if isinstance(arg, (Placeholder, np.ndarray)):
        raise SemanticError(f"{name}: a key is what `gp.random.key(seed)` gives, not an array of its numbers")
    what = f"a {arg.type} field" if isinstance(arg, Field) else described(arg)
    raise SemanticError(f"{name}: the first argument is a key, made by `gp.random.key(seed)`, not {what}")


def _derived(name: str, key: Field, data: Any, kind: int) -> Field:
    arg = a_key(name, key)
    if isinstance(data, Field):
        number = _integer_field(name, data)
        return _key_field(name, [arg, number], lambda: _hashed(arg, _words(k._readTensor(number)), kind))
    count = _integer(name, data)
    words = (count & WORD, count >> 32 & WORD)
    if isinstance(arg, Key):
        return Key(*philox(arg.words, (*words, 0, kind))[:2])
    return _key_field(name, [arg], lambda: _hashed(arg, k._uint2(*words), kind), words)


def _key_field(name: str, fields: list[Field], value: Any, key: Any = ()) -> Field:
    return library_call(name, (KEY,), fields, lambda: k._writeTensor(k._out0, value()), key)[0]


def _words(number: Any) -> Any:
    """The two words of an integer; signed integers are sign-extended."""
    wide = k._convert(number, "int64" if "u" not in str(number.type) else "uint64")
    return k._uint2(k._convert_uint(wide & WORD), k._convert_uint(wide >> 32 & WORD))


def _hashed(key: Field, words: Any, kind: int) -> Any:
    return k._random(k._readTensor(key), k._uint4(words, 0, kind)).xy


def _integer(name: str, arg: Any) -> int:
    if not is_integer(arg):
        raise SemanticError(f"{name} takes an integer here, or a 0D Field of integers, not {described(arg)}")
    return int(arg)


def _integer_field(name: str, arg: Field) -> Field:
    if arg.type.array_shape or arg.type.element.kind not in "iu":
        raise SemanticError(f"{name} takes a 0D Field of integers here, not a {arg.type} field")
    return arg


def philox(key: tuple[int, ...], counter: tuple[int, ...]) -> list[int]:
    """The words of `_random`, in Python integers: keys with values on the host need no kernel."""
    (low, high), c = key, [*counter]
    for turn in range(ROUNDS):
        one, two = c[0] * MULTIPLIERS[0], c[2] * MULTIPLIERS[1]
        own = [word + turn * step & WORD for word, step in zip((low, high), STEPS, strict=True)]
        c = [two >> 32 ^ c[1] ^ own[0], two & WORD, one >> 32 ^ c[3] ^ own[1], one & WORD]
    return c


# --- random words -----------------------------------------------------------------------------------------------------
# Counter-based random words are functions of the key and the point alone, so they are the same however a field is fused.
# Four neighbours along the last axis of the grid, or four elements of a tensor, share the four words that `_random` computes for
# one counter if each value takes one word; if it takes two, two neighbours share them.


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

    def of_iteration(self, iteration: Any = 0) -> list[Any]:
        """The words of an iteration of rejection sampling."""
        words = k._random(self.key, k._uint4(*map(_word, self.counter), _word(iteration)))
        parts = [words[n] for n in range(BLOCK)]
        if isinstance(self.first, int):
            return parts[self.first : self.first + self.count]
        result = parts[: self.count]
        for start in range(self.count, BLOCK, self.count):
            chosen = self.first == start
            result = [k._where(chosen, parts[start + n], word) for n, word in enumerate(result)]
        return result

    def pair(self) -> tuple[Any, Any, Any]:
        """Two words that a value of one word shares with its neighbour, and which of both it is, 0 or 1."""
        words = k._random(self.key, k._uint4(*map(_word, self.counter), 0))
        parts = [words[n] for n in range(BLOCK)]
        if isinstance(self.first, int):
            start = self.first // 2 * 2
            return parts[start], parts[start + 1], self.first % 2
        late = self.first >= 2
        return k._where(late, parts[2], parts[0]), k._where(late, parts[3], parts[1]), self.first % 2


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
        key_parts: the constants that `value` depends on, for the cache key.
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
        classes = " or ".join({"f": "floats", "i": "integers", "u": "unsigned integers"}[each] for each in kinds[:2])
        raise SemanticError(f"random.{name} gives {classes}, not {kind.dtype}; `.astype` converts")
    return kind


def scaled(field: Field, by: Any, offset: Any = 0) -> Field:
    """The field times a number or a field, plus an offset, in its own dtype."""
    dtype = field.dtype
    if isinstance(by, Field) or by != 1:
        field = field * by
    if isinstance(offset, Field) or offset != 0:
        field = field + offset
    return field.astype(dtype)
