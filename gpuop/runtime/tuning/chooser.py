"""Choices for a device from the store or from measurements: the interface of planning."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gpuop.base.config import config
from gpuop.base.errors import DeviceError, GpuopError, SemanticError, warn
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.base.system import in_forked_child
from gpuop.fusion.kernel_limits import Limits, limits_ahead
from gpuop.fusion.variant_selection import Choices, First
from gpuop.ir.kernel import Kernel, Pin
from gpuop.ir.target import Target
from gpuop.ir.values import Node
from gpuop.ir.variants import Variant, Variants, identity_of, shown
from gpuop.passes.resolve_target import for_target
from gpuop.runtime.base.backend import Array, Backend
from gpuop.runtime.tuning.benchmark import REFUSALS, Benchmark, Candidate, alike
from gpuop.runtime.tuning.modes import AUTO, FORCE, NEVER, STORED, Mode, mode_in_use, mode_of_context
from gpuop.runtime.tuning.schedule_choices import key_of, read_pin
from gpuop.runtime.tuning.store import (
    SCHEDULE,
    VARIANT,
    DeviceSignature,
    TuneStore,
    signature_of,
    target_signature,
    writes,
)

HERE, ANY_DRIVER = (0, 0), (1, 0)  # distances of a device from itself
_measuring = threading.RLock()  # concurrent measurements would disturb one another
_cache: BoundedCache[Any, Choices] = BoundedCache(64)
_last: BoundedCache[Any, tuple[Any, Choices]] = BoundedCache(64)  # of each device

in_forked_child(_measuring._at_fork_reinit)  # type: ignore[attr-defined]


def choices_on(backend: Backend) -> Choices:
    """Return the choices for a device: the same object until something is stored, or the mode changes."""
    settings, last = choice_settings(), _last.get(backend.main)
    if last is not None and last[0] == settings:
        return last[1]
    mode = mode_in_use()
    key = (backend.main, *settings)
    choices = _cache.find(key, lambda: Chooser(backend.target, signature_of(backend), backend.main, mode, mode.name))
    _last[backend.main] = settings, choices
    return choices


def choice_settings() -> tuple[Any, ...]:
    """Return what choices depend on besides the device: the mode, the store and its writes."""
    mode = mode_of_context.get()
    name = config.tune if mode is None else mode if mode.name == FORCE else mode.name
    return name, config.tune_store, writes[0]


def limits_on(backend: Backend, pin: Pin | None) -> Limits:
    """Return the current limits of plans for a device."""
    return replace(backend.limits, pin=pin, choices=choices_on(backend))


def limits_for(target: Target) -> Limits:
    """Return the limits of plans for a target without a device: choices are the measurements of the most similar one."""
    mode = mode_in_use()
    choices: Choices = First(target)
    if mode.name != NEVER:
        choices = _cache.find(
            (target, config.tune_store, writes[0]),
            lambda: Chooser(target, target_signature(target), None, mode, STORED),
        )
    return replace(limits_ahead(target), choices=choices)


@dataclass(frozen=True, eq=False)
class Chooser(Choices):
    """Choices from the store, and from measurements if the mode allows them.

    Attributes:
        backend: None if only the target is known.
    """

    target: Target
    place: DeviceSignature
    backend: Backend | None
    mode: Mode
    named: str

    @property
    def store(self) -> TuneStore:
        return TuneStore(config.tune_store)

    def variant(self, call: Variants, nodes: Sequence[Node | None]) -> Variant:
        fitting = call.fitting(self.target)
        if len(fitting) == 1:
            return fitting[0]
        key = identity_of(fitting)
        choice = None if self.named == NEVER else self._stored(key, fitting)
        if self._measures(key, choice is not None and choice[0] == HERE):
            with _measuring:
                measured = self._measured(call, fitting, key, nodes)
            if measured is not None:
                return measured
        if choice is not None:
            return choice[1]
        return next((v for v in fitting if self._runs(v.kernel)), fitting[0])

    def pin(self, kernel: Kernel) -> Pin | None:
        if self.named == NEVER or kernel.pin is not None or not self._query(lambda: self.store.has(SCHEDULE), False):
            return None
        near = self._query(lambda: self.store.of(SCHEDULE, key_of(kernel), self.place), [])
        own = [entry for distance, entry in near if distance <= ANY_DRIVER]  # other devices: predictions are better
        return read_pin(own[0].choice) if own else None

    # --- what is known ------------------------------------------------------------------------------------------

    def _query(self, ask: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return ask()
        except GpuopError as failed:
            warn(f"{failed}; nothing of it is used")
            return otherwise

    def _stored(self, key: str, fitting: Sequence[Variant]) -> tuple[tuple[int, int], Variant] | None:
        """Return the choice on the nearest device, and its distance."""
        named = {shown(variant.parameters): variant for variant in fitting}
        for distance, entry in self._query(lambda: self.store.of(VARIANT, key, self.place), []):
            variant = named.get(entry.choice)
            if variant is not None and (distance == HERE or self._runs(variant.kernel)):
                return distance, variant
        return None

    def _runs(self, kernel: Kernel) -> bool:
        """Return whether the device has what a kernel needs."""
        if self.backend is None:
            return True
        try:
            self.backend.check(for_target(kernel, self.target))
        except DeviceError:
            return False
        return True

    # --- measuring ----------------------------------------------------------------------------------------------

    def _measures(self, key: str, measured: bool) -> bool:
        if self.backend is None or self.backend.checked:
            return False
        if self.named == FORCE:
            return (self.place, key) not in self.mode.done
        return self.named == AUTO and not measured

    def _measured(
        self, call: Variants, fitting: Sequence[Variant], key: str, nodes: Sequence[Node | None]
    ) -> Variant | None:
        """Measure variants, store the fastest and return it; None if none can be measured, or another thread has measured them."""
        assert self.backend is not None
        choice = self._stored(key, fitting)
        if not self._measures(key, choice is not None and choice[0] == HERE):
            return None if choice is None else choice[1]
        candidates = [Candidate(shown(v.parameters), v.kernel, v.inputs) for v in fitting]
        benchmark = Benchmark(self.backend, self.mode, call, _Equal(call))
        try:
            winner = benchmark.fastest(VARIANT, candidates, nodes)
        except REFUSALS:
            if self.named == FORCE:
                raise
            return None  # a variant that runs without measurement may need less memory
        self.mode.done.add((self.place, key))
        assert winner is not None
        entry = benchmark.entry(VARIANT, key, candidates, winner)
        self._query(lambda: self.store.put([entry]), 0)
        self.mode.stored.append(entry)
        return fitting[candidates.index(winner)]


class _Equal:
    """A comparison of the results of variants with those of the first that ran."""

    def __init__(self, call: Variants) -> None:
        self.call = call
        self.first: tuple[str, list[Array]] | None = None

    def __call__(self, candidate: Candidate, results: list[Array]) -> str:
        if self.first is None:
            self.first = candidate.name, results
        name, variant = self.first
        for param, a, b in zip(self.call.written, variant, results, strict=True):
            differ = alike(param.type, a, b)
            if differ:
                raise SemanticError(
                    f"the variants of operator `{self.call.name}` compute the same, and with {candidate.name} {differ} from "
                    f"those with {name}",
                    self.call.loc,
                )
        return ""
