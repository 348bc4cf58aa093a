"""Targets of code generation: a language, and the facts of a device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A language and a device's facts; those of a device that is not there are the least that it may have.

    Attributes:
        backend: "opencl", "cuda" or "reference".
        architecture: CUDA's compute capability, as 90 for sm_90; 0 elsewhere.
        device: "gpu" or "cpu".
        simd_width: threads that run in step: a warp, or the floats of a vector register.
        local_memory_bytes: of a work-group.
        has_fp16, has_fp64: whether the device computes in half and double.
        has_arrays: whether libraries get its memory as arrays: NumPy's on CPUs, CuPy's on CUDA where there is CuPy.
        widening: how a thread is given several points where it accesses only its own: "scalar", it is not; "unrolled",
            copies of the body between wide loads and stores; "vector", the language's vector types; "functions", these in
            stencils and in kernels that call functions of floats within an error bound, and elsewhere one by one.
        makes_lanes: whether the device's compiler may make vectors of the threads, as those of CPUs do, and is perhaps Intel's.
        least_threads: grids are not widened to fewer threads than these, which keep the device busy.
    """

    backend: str
    architecture: int = 0
    device: str = "gpu"
    simd_width: int = 1
    local_memory_bytes: int = 32768
    has_fp16: bool = False
    has_fp64: bool = True
    has_arrays: bool = False
    widening: str = "scalar"
    makes_lanes: bool = True
    least_threads: int = 65536

    @property
    def vector_length(self) -> int:
        """Components of a vector: two registers of them, as far as the language goes; 1 where points are not put in vectors."""
        return min(2 * self.simd_width, 16) if self.widening in ("vector", "functions") else 1

    @property
    def shuffles(self) -> bool:
        """Whether the threads of a warp exchange values without memory, as CUDA's do."""
        return self.architecture > 0

    @property
    def gathers(self) -> bool:
        """Whether vectors load elements that lie anywhere: compilers that make vectors of threads do so themselves."""
        return self.widening == "functions"

    @property
    def overlaps_halves(self) -> bool:
        """Whether vectors of halves may begin anywhere: PoCL's compiler and kernels have crashed there."""
        return self.widening != "functions"

    def __str__(self) -> str:
        if self.architecture:
            return f"{self.backend}:sm_{self.architecture}"
        return "opencl:cpu" if (self.backend, self.device) == ("opencl", "cpu") else self.backend
