"""Cache of recordings and traces, each valid while its captured state is unchanged."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from gpuop.base.lru import BoundedCache
from gpuop.dsl.guards.guard import Snapshot, snapshot_or_reason

EVERY_CALL = "at every call: "
Result = TypeVar("Result")


class GuardedCache(BoundedCache[Any, tuple[Snapshot, Result]], Generic[Result]):
    """Results of functions by their arguments, each with a snapshot of the captures."""

    __slots__ = ()

    def lookup(
        self, key: Hashable, receiver: tuple[Any, ...], parts: tuple[Any, ...], large_arrays: bool = False
    ) -> tuple[Result | None, Snapshot | str]:
        """Result under a key if no capture has changed, else None; and the snapshot of the captures, or the reason for
        having none.

        Args:
            receiver: the bound object of a method, and functions whose code is in the key: several of these may alternate.
            parts, large_arrays: as in `snapshot_or_reason`.
        """
        own = _with(key, receiver)
        cached = self.get(own)
        if cached and cached[0].holds(*parts):
            return cached[1], cached[0]
        captured = snapshot_or_reason(*parts, large_arrays=large_arrays)
        for entry in (cached, self.get(key) if receiver else None):
            if entry and entry[0] == captured and isinstance(captured, Snapshot):
                self[own] = captured, entry[1]
                return entry[1], captured
        return None, captured

    def reason_for_retrace(self, key: Hashable, receiver: tuple[Any, ...], captured: Snapshot | str) -> str:
        """Reason for recording under a key once more, given the captures now; empty if there is no earlier result."""
        if isinstance(captured, str):
            return f"{EVERY_CALL}{captured}"
        cached = self.get(_with(key, receiver))
        return cached[0].changed() if cached else ""

    def keep(self, key: Hashable, receiver: tuple[Any, ...], captured: Snapshot, result: Result) -> None:
        """Store a result for the object, and for others equal to it."""
        self[key] = self[_with(key, receiver)] = captured, result


def _with(key: Hashable, receiver: tuple[Any, ...]) -> Hashable:
    """Key of a result for one object."""
    return (key, *map(id, receiver)) if receiver else key
