"""Targets of code generation: a language, and the facts of a device."""

from __future__ import annotations

from gpuop.base.records import dataclass

# Compute capabilities whose multiprocessors do 2 or 4 operations on doubles at a time (CUDA Programming Guide, Arithmetic
# Instructions)
SLOW_DOUBLES = (50, 52, 53, 61, 62, 75, 86, 87, 88, 89, 103, 110, 120, 121)


@dataclass(frozen=True, slots=True)
class Target:
    """A language and the facts of a device; for an absent device, the least that it may have.

    Attributes:
        backend: "opencl", "cuda" or "reference".
        architecture: CUDA compute capability, such as 90 for sm_90; 0 elsewhere.
        device: "gpu" or "cpu".
        simd_width: threads that run in step: a warp, or the floats of a vector register.
        local_memory_bytes: of a work-group.
        has_fp16, has_fp64: whether the device computes in half and double.
        has_arrays: True if libraries get its memory as arrays: NumPy arrays on CPUs, CuPy arrays on CUDA if CuPy is installed.
        widening: form of thread coarsening in kernels that access only own points: "scalar", it is not; "unrolled",
            copies of the body between wide loads and stores; "vector", the language's vector types; "functions", these in
            stencils and in kernels that call functions of floats within an error bound, and elsewhere one by one.
        makes_lanes: True if the device compiler may vectorize threads, as on CPUs, and is perhaps the Intel compiler.
        least_threads: coarsening leaves at least this many threads, which keep the device busy.
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
    def slow_fp64(self) -> bool:
        """True if double takes many times as long as float, as on GPUs that are no accelerators; OpenCL does not tell them."""
        return self.architecture in SLOW_DOUBLES or (self.backend, self.device) == ("opencl", "gpu")

    @property
    def shuffles(self) -> bool:
        """True if the threads of a warp exchange values without memory, as in CUDA."""
        return self.architecture > 0

    @property
    def gathers(self) -> bool:
        """True if vectors may load scattered elements: compilers that vectorize threads gather by themselves."""
        return self.widening == "functions"

    @property
    def overlaps_halves(self) -> bool:
        """True if vectors of halves may begin anywhere; the PoCL compiler and its kernels have crashed there."""
        return self.widening != "functions"

    def __str__(self) -> str:
        if self.architecture:
            return f"{self.backend}:sm_{self.architecture}"
        return "opencl:cpu" if (self.backend, self.device) == ("opencl", "cpu") else self.backend
