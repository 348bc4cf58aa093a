"""Memory cache of a bounded number of entries, shared by threads. gpuop has no other kind."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from gpuop.base.finalizers import WeakKeys

K = TypeVar("K")
V = TypeVar("V")
_MISSING: Any = object()
_lock = threading.RLock()  # of all caches, held for a moment; a signal's handler may need it too


class BoundedCache(Generic[K, V]):
    """The entries used last. An older one may be forgotten at any time, so it must be possible to make it again, equal."""

    __slots__ = ("__weakref__", "_entries", "_half", "most")

    def __init__(self, most: int) -> None:
        self.most, self._half = most, most // 2
        self._entries: OrderedDict[K, V] = OrderedDict()
        with _lock:
            _all[self] = None

    def get(self, key: K, default: Any = None) -> V | Any:
        entries = self._entries
        if len(entries) > self._half:  # before that nothing is forgotten soon, and a look-up costs one hash
            with _lock:
                if key in entries:
                    entries.move_to_end(key)
        return entries.get(key, default)

    def __setitem__(self, key: K, value: V) -> None:
        with _lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self.most:
                self._entries.popitem(last=False)

    def find(self, key: K, make: Callable[[], V]) -> V:
        """The entry of a key, made without the lock where there is none: threads that want it at once may make one each."""
        found = self.get(key, _MISSING)
        if found is _MISSING:
            self[key] = found = make()
        return found

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        with _lock:
            self._entries.clear()


_all: WeakKeys[BoundedCache[Any, Any], None] = WeakKeys()


def forget_all() -> None:
    """Empty every cache."""
    with _lock:
        caches = list(_all)
    for each in caches:
        each.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # type: ignore[attr-defined]
