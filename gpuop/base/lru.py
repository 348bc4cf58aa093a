"""Memory cache of a bounded number of entries, shared by threads. gpuop has no other kind."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from gpuop.base.finalizers import WeakKeys
from gpuop.base.system import in_forked_child

K = TypeVar("K")
V = TypeVar("V")
_MISSING: Any = object()
_lock = threading.RLock()  # one lock of all caches, held briefly; re-entrant for signal handlers


class BoundedCache(Generic[K, V]):
    """Cache of the entries used last. Any older entry may be evicted, so it must be possible to compute it again, equal."""

    __slots__ = ("__weakref__", "_entries", "_half", "_ordered", "most")

    def __init__(self, most: int) -> None:
        self.most, self._half = most, most // 2
        self._ordered = False  # whether uses are noted: before half of the places are taken no eviction is near
        self._entries: OrderedDict[K, V] = OrderedDict()
        with _lock:
            _all[self] = None

    def get(self, key: K, default: Any = None) -> V | Any:
        entries = self._entries
        if self._ordered:
            with _lock:
                if key in entries:
                    entries.move_to_end(key)
        try:
            return entries[key]
        except KeyError:
            return default

    def __setitem__(self, key: K, value: V) -> None:
        with _lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            self._ordered = len(self._entries) > self._half
            while len(self._entries) > self.most:
                self._entries.popitem(last=False)

    def find(self, key: K, make: Callable[[], V]) -> V:
        """Entry of a key, computed without the lock on a miss: threads that miss at once may compute it twice."""
        value = self.get(key, _MISSING)
        if value is _MISSING:
            self[key] = value = make()
        return value

    def __iter__(self) -> Iterator[K]:
        """The keys now."""
        with _lock:
            return iter(list(self._entries))

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
    for cache in caches:
        cache.clear()


in_forked_child(_lock._at_fork_reinit)  # type: ignore[attr-defined]
