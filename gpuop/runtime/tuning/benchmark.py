"""Benchmarks of kernels that compute the same: all run, and slow ones are given up early."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from statistics import median
from time import monotonic, time

import numpy as np

from gpuop.base.config import config
from gpuop.base.errors import CompileError, DeviceError, GpuopError, UnsupportedError
from gpuop.base.records import dataclass
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node
from gpuop.ir.variants import Variants
from gpuop.passes.resolve_target import for_target
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, Launch
from gpuop.runtime.base.host_arrays import array_of, planes_of
from gpuop.runtime.profile.device_facts import run_once
from gpuop.runtime.tuning.modes import Mode
from gpuop.runtime.tuning.store import TunedChoice, signature_of

RUNS, SHORT_RUNS = 4, 10  # of each, before it is compared; the first one compiles
LONG = 0.1  # seconds: the first run may take so much more than later ones
FAR, SLOWER, NEAR = 5.0, 1.5, 1.1  # times the best: after the first run; after some runs; for a second comparison
SHORT = 2e-3  # seconds of runs for each, or as many runs as short ones have: disturbances may be longer than a run
ROUNDS, SECONDS = 20, 0.1  # limits of each in the second comparison
REFUSALS = (CompileError, DeviceError, UnsupportedError, MemoryError)


@dataclass
class Candidate:
    """A kernel of the comparison.

    Attributes:
        inputs: the arguments that it takes.
        seconds: its time; infinite if it does not run.
        note: the reason why it was given up.
    """

    name: str
    kernel: Kernel
    inputs: tuple[int, ...]
    seconds: float = math.inf
    note: str = ""
    launch: Launch | None = None
    times: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        time = f"{1e3 * self.seconds:.4g} ms" if self.times else "not measured"
        return f"{self.name or 'as predicted'}: {time}{', ' * bool(self.note)}{self.note}"


@dataclass
class Benchmark:
    """Kernels that compute the same, on a queue of a device.

    Attributes:
        mode: its progress gets a line for each candidate.
        call: the recorded kernel, or the variants, with the inputs and outputs of each candidate.
        check: gets a candidate and the values of its outputs; returns a note if these exclude it.
        until: the end by `monotonic`; the first candidate runs in any case.
    """

    backend: Backend
    mode: Mode
    call: Kernel | Variants
    check: Callable[[Candidate, list[Array]], str]
    best: float = math.inf
    until: float = math.inf
    arguments: Sequence[Argument] = ()

    def fastest(
        self, what: str, candidates: Sequence[Candidate], nodes: Sequence[Node | None] | None = None
    ) -> Candidate | None:
        """Return the fastest candidate, the earlier one of equals; None if none runs.

        Args:
            what: VARIANT or SCHEDULE.
            nodes: the fields whose values are the inputs, as far as they have values.

        Raises:
            CompileError, DeviceError: none runs; the error of the last one. MemoryError, too, without memory for the inputs.
        """
        self.mode.begin(f"{self.call.name} on {self.backend.name}: {len(candidates)} {what}s")
        self.until = monotonic() + (self.mode.seconds or config.tune_seconds)
        pairs = zip(self.call.inputs, nodes or [None] * len(self.call.inputs), strict=True)
        self.arguments = [value_of(param, node, self.backend) for param, node in pairs]
        self.outputs = [param.type for param in self.call.written]
        backend = self.backend.measuring()
        buffers = [backend.empty(kind) for kind in self.outputs]
        refusal = None
        for candidate in candidates:
            if self.best < math.inf and monotonic() > self.until:
                candidate.note = "no time was left"
                continue
            try:
                self._run(backend, candidate, buffers)
            except REFUSALS as refused:
                candidate.note, refusal = f"skipped: {str(refused).splitlines()[0]}", refused
            self.mode.tell(str(candidate))
        running = [c for c in candidates if c.seconds < math.inf]
        if not running and refusal is not None:
            raise refusal
        self._again(backend, [c for c in running if c.seconds <= NEAR * self.best])
        return min(running, key=lambda c: c.seconds, default=None)

    def entry(self, what: str, key: str, candidates: Sequence[Candidate], winner: Candidate) -> TunedChoice:
        """Return the entry of a winner for the store.

        Args:
            key: a digest of the recorded kernel.
        """
        types = ", ".join(str(param.type) for param in self.call.inputs)
        facts = (self.call.name, types, winner.name, winner.seconds, "\n".join(map(str, candidates)), time())
        return TunedChoice(what, key, signature_of(self.backend), *facts)

    def _run(self, backend: Backend, candidate: Candidate, buffers: list[Buffer]) -> None:
        program = backend.compile(for_target(candidate.kernel, backend.target))
        inputs = [self.arguments[k] for k in candidate.inputs]
        candidate.launch = backend.bind(program, [*inputs, *buffers])
        first = run_once(backend, candidate.launch)
        outputs = [
            array_of(kind, backend.download(kind, buffer)) for kind, buffer in zip(self.outputs, buffers, strict=True)
        ]
        candidate.note = self.check(candidate, outputs)
        if candidate.note:
            return
        candidate.times = [first]
        if first < max(FAR * self.best, LONG):
            candidate.times.append(run_once(backend, candidate.launch))
            while self._goes_on(candidate.times):
                candidate.times.append(run_once(backend, candidate.launch))
        candidate.seconds = min(candidate.times)
        if len(candidate.times) < RUNS and candidate.seconds > self.best:
            candidate.note = "given up"
        self.best = min(self.best, candidate.seconds)

    def _goes_on(self, times: list[float]) -> bool:
        if sum(times) < SHORT:
            return len(times) < SHORT_RUNS
        return len(times) < RUNS and min(times) < SLOWER * self.best

    def _again(self, backend: Backend, near: Sequence[Candidate]) -> None:
        """Measure the closest candidates in alternation, so that a disturbance affects all."""
        if len(near) < 2:
            return
        times: list[list[float]] = [[] for _ in near]
        while len(times[0]) < ROUNDS and sum(times[0]) < SECONDS and (not times[0] or monotonic() < self.until):
            for candidate, each in zip(near, times, strict=True):
                assert candidate.launch is not None
                each.append(run_once(backend, candidate.launch))
        for candidate, each in zip(near, times, strict=True):
            candidate.seconds = median(each)


def alike(kind: FieldType, a: Array, b: Array) -> str:
    """Return how far two results differ, as the end of a sentence; "" if only by the rounding of sums in another order."""
    if np.array_equal(a, b, equal_nan=kind.array_dtype.kind in "fc"):
        return ""
    if kind.array_dtype.kind not in "fc":
        return f"{np.count_nonzero(a != b)} of {a.size} values differ"
    with np.errstate(all="ignore"):
        wide = np.complex128 if kind.array_dtype.kind == "c" else np.float64
        x, y = a.astype(wide), b.astype(wide)
        tolerance = math.sqrt(np.finfo(kind.array_dtype).eps)
        largest = max((np.abs(v[np.isfinite(v)]).max(initial=0) for v in (x, y)), default=0)
        near = np.isclose(x, y, rtol=tolerance, atol=tolerance * largest, equal_nan=True)
    count = int(near.size - np.count_nonzero(near))
    return f"{count} of {a.size} values differ" if count else ""


def value_of(param: FieldParam, node: Node | None, backend: Backend) -> Argument:
    """Return an argument to measure with: the field's values if it has some, otherwise numbers from 0 to 1, or to 99."""
    planes = planes_of(param.type, _values(param.type, node))
    return tuple(planes.reshape(-1).tolist()) if param.by_value else backend.upload(param.type, planes)


def _values(kind: FieldType, node: Node | None) -> Array:
    if isinstance(node, Leaf):
        try:
            return node.source.read()[0]
        except GpuopError:  # a sensor, an argument of a pipeline, memory of another device
            pass
    rng, dtype = np.random.default_rng(0), kind.array_dtype
    shape = tuple(kind.array_shape)
    if dtype.kind in "fc":
        return rng.random(shape, np.float32).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
