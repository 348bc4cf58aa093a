"""Finalizers of objects that run as C calls alone.

A Python function may be interrupted by a signal handler at its start. In a destructor or a weak reference's callback, Python
only reports the exception that the handler raises, so an interrupt would be lost.
"""

from __future__ import annotations

import atexit
import operator
from collections import deque
from collections.abc import Callable, Iterator
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


atexit.register(_ends.clear)  # nothing is called when the process ends: it takes all with it


class WeakKeys(Generic[K, V]):
    """Values by objects, as long as there are these: `weakref.WeakKeyDictionary`, whose callbacks are Python's."""

    def __init__(self) -> None:
        self._values: dict[ref[K], V] = {}
        self._ended: Callable[[ref[K]], Any] = self._values.pop

    def __setitem__(self, key: K, value: V) -> None:
        self._values[ref(key, self._ended)] = value

    def __getitem__(self, key: K) -> V:
        return self._values[ref(key)]

    def __contains__(self, key: K) -> bool:
        return ref(key) in self._values

    def __iter__(self) -> Iterator[K]:
        """The objects that there are now."""
        return iter([key for known in list(self._values) if (key := known()) is not None])

    def get(self, key: K) -> V | None:
        return self._values.get(ref(key))

    def setdefault(self, key: K, value: V) -> V:
        return self._values.setdefault(ref(key, self._ended), value)

    def discard(self, key: K) -> None:
        self._values.pop(ref(key), None)

    def clear(self) -> None:
        self._values.clear()


class WeakValues(Generic[K, V]):
    """Objects by keys, as long as there are these objects: `weakref.WeakValueDictionary`, whose callbacks are Python's."""

    def __init__(self) -> None:
        self._ends: dict[K, End[V]] = {}

    def __setitem__(self, key: K, value: V) -> None:
        end = End(value, _call_what_is_left)
        end.left = partial(self._ends.pop, key, None)
        self._ends[key] = end

    def get(self, key: K) -> V | None:
        end = self._ends.get(key)
        return None if end is None else end()

    def values(self) -> list[V]:
        """The objects that there are now."""
        return [value for end in list(self._ends.values()) if (value := end()) is not None]

    def clear(self) -> None:
        self._ends.clear()
