"""What objects leave when they end, seen to by calls of C's alone.

Signals' handlers run where functions of Python's begin, and what they raise in a destructor or in a weak reference's callback
is only reported: an interrupt would be lost.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from operator import methodcaller
from typing import Any, Generic, TypeVar
from weakref import ref

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
CALL: Callable[[Callable[[], Any]], Any] = getattr(operator, "call", methodcaller("__call__"))  # without a bytecode


class End(ref[T]):
    """The end of an object, which its callback gets, and what it leaves. Who makes one keeps it till then."""

    __slots__ = ("left",)
    left: Any


_ends: dict[int, End[Any]] = {}  # that have not come: the ends of cycles tell nobody who ends with them
_numbers = count()
_call_what_is_left = methodcaller("left")


def at_end(thing: Any, *calls: Callable[[], Any]) -> None:
    """Call functions of C's one after another when nobody refers to a thing any more."""
    end, number = End(thing, _call_what_is_left), next(_numbers)
    last: Callable[[], Any] = partial(_ends.pop, number)
    end.left = partial(deque, map(CALL, [*calls, last]), 0)
    _ends[number] = end


class WeakKeys(Generic[K, V]):
    """Values by objects, as long as there are these: `weakref.WeakKeyDictionary`, whose callbacks are Python's."""

    def __init__(self) -> None:
        self._values: dict[ref[K], V] = {}
        self._ended: Callable[[ref[K]], Any] = self._values.pop

    def __setitem__(self, key: K, value: V) -> None:
        self._values[ref(key, self._ended)] = value

    def get(self, key: K) -> V | None:
        return self._values.get(ref(key))

    def setdefault(self, key: K, value: V) -> V:
        return self._values.setdefault(ref(key, self._ended), value)

    def clear(self) -> None:
        self._values.clear()
