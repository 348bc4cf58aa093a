"""Finalizers of objects that run as C calls alone.

A Python function may be interrupted by a signal handler at its start. In a destructor or a weak reference's callback, Python
only reports the exception that the handler raises, so an interrupt would be lost.
"""

from __future__ import annotations

import atexit
import operator
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
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
    """Weak reference whose callback runs the finalizer `left`. Its maker keeps it until then."""

    __slots__ = ("left",)
    left: Any


_ends: dict[int, End[Any]] = {}  # pending; weak references that die with their object in a cycle call nothing
_numbers = count()
_call_what_is_left = methodcaller("left")


def at_end(thing: Any, *calls: Callable[[], Any]) -> None:
    """Call C functions one after another when nobody refers to a thing any more."""
    end, number = End(thing, _call_what_is_left), next(_numbers)
    last: Callable[[], Any] = partial(_ends.pop, number)
    end.left = partial(deque, map(CALL, [*calls, last]), 0)
    _ends[number] = end


atexit.register(_ends.clear)  # no calls at exit: the process releases everything


class WeakKeys(Generic[K, V]):
    """Values by weakly referenced objects: `weakref.WeakKeyDictionary`, but without Python callbacks."""

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
        """The living objects."""
        return iter([key for reference in list(self._values) if (key := reference()) is not None])

    def get(self, key: K) -> V | None:
        return self._values.get(ref(key))

    def setdefault(self, key: K, value: V) -> V:
        return self._values.setdefault(ref(key, self._ended), value)

    def discard(self, key: K) -> None:
        self._values.pop(ref(key), None)

    def clear(self) -> None:
        self._values.clear()


class WeakValues(Generic[K, V]):
    """Weakly referenced objects by keys: `weakref.WeakValueDictionary`, but without Python callbacks."""

    def __init__(self) -> None:
        self._ends: dict[K, End[V]] = {}
        self._ended: deque[K] = (
            deque()
        )  # keys of ended objects: a key with a hash in Python is not looked up when one ends

    def __setitem__(self, key: K, value: V) -> None:
        self._sweep()
        end = End(value, _call_what_is_left)
        end.left = partial(self._ended.append, key)
        self._ends[key] = end

    def get(self, key: K) -> V | None:
        self._sweep()
        end = self._ends.get(key)
        return None if end is None else end()

    def _sweep(self) -> None:
        """Forget the keys of ended objects."""
        with suppress(IndexError):  # another thread may take the last key
            while self._ended:
                key = self._ended.popleft()
                end = self._ends.get(key)
                if end is not None and end() is None:
                    self._ends.pop(key, None)

    def reference(self, key: K) -> Callable[[], V | None] | None:
        """A weak reference to the object, if there is one."""
        return self._ends.get(key)

    def values(self) -> list[V]:
        """The living objects."""
        return [value for end in list(self._ends.values()) if (value := end()) is not None]

    def clear(self) -> None:
        self._ends.clear()
        self._ended.clear()
