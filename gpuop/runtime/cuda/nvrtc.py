"""Compilation of CUDA C++ with NVRTC, without a GPU or a driver; with nvcc for architectures that NVRTC has dropped."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from gpuop.base.errors import DeviceError
from gpuop.codegen.cuda.dialect import OPTIONS

PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")  # CUDA 13 has dropped architectures before sm_75
GETTERS = {"cubin": "CUBIN", "ptx": "PTX"}


def compile_cuda(text: str, architecture: str, kind: str = "cubin") -> bytes:
    """Compile to a cubin, for devices of the same major and the same or a later minor architecture, or to PTX, for all later ones.

    Args:
        architecture: for example "sm_90".
        kind: "cubin" or "ptx", which ends with a zero byte for the driver.

    Raises:
        DeviceError: no compiler supports the architecture.
        RuntimeError: the compiler refuses the text; the message is its log.
    """
    return _compiled(text, architecture, kind, OPTIONS)[0]


def resource_log(text: str, architecture: str) -> str:
    """Return the compiler's report of registers and memory; raises as `compile_cuda`."""
    return _compiled(text, architecture, "cubin", (*OPTIONS, "--ptxas-options=--verbose"))[1]


def _compiled(text: str, architecture: str, kind: str, options: Sequence[str]) -> tuple[bytes, str]:
    """Return the code, and the compiler's log."""
    library = _compilers().get(architecture)
    if library is not None:
        return _nvrtc(library, text, architecture, kind, options)
    nvcc = shutil.which("nvcc")
    if nvcc is not None and architecture in _nvcc_architectures(nvcc):
        return _nvcc(nvcc, text, architecture, kind, options)
    raise DeviceError(_refusal(architecture))


def architectures() -> tuple[str, ...]:
    """Return the architectures of NVRTC, such as "sm_90", oldest first; none if NVRTC is missing."""
    return tuple(sorted(_compilers(), key=lambda name: int(name[3:])))


def _refusal(architecture: str) -> str:
    supported = architectures()
    if not supported:
        return "CUDA needs NVRTC, which is not installed: `pip install nvidia-cuda-nvrtc`, or install the CUDA toolkit"
    older = "; `pip install nvidia-cuda-nvrtc-cu12` brings one for older GPUs" if "sm_70" not in supported else ""
    return f"NVRTC does not compile for {architecture}, and there is no nvcc that does; it knows {', '.join(supported)}{older}"


# --- NVRTC ----------------------------------------------------------------------------------------------------------


@cache
def _compilers() -> dict[str, ctypes.CDLL]:
    """Return the newest library that compiles for an architecture."""
    from ctypes.util import find_library

    libraries: dict[str, ctypes.CDLL] = {}
    for library in _loaded(in_wheels(PACKAGES, "libnvrtc.so")) or _loaded((*_toolkits(), find_library("nvrtc")))[:1]:
        count = ctypes.c_int()
        library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        library.nvrtcGetSupportedArchs(numbers)
        libraries = {f"sm_{number}": library for number in numbers} | libraries
    return libraries


def _loaded(names: Iterable[str | None]) -> list[ctypes.CDLL]:
    libraries = []
    for name in filter(None, names):
        with suppress(OSError):
            libraries.append(ctypes.CDLL(name))
    return libraries


def _toolkits() -> Iterator[str]:
    for folder in ("lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"):
        yield from map(str, sorted(Path("/usr/local").glob(f"cuda*/{folder}/libnvrtc.so*"), reverse=True))


def _nvrtc(library: ctypes.CDLL, text: str, architecture: str, kind: str, flags: Sequence[str]) -> tuple[bytes, str]:
    program = ctypes.c_void_p()
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None))
    try:
        target = architecture if kind == "cubin" else architecture.replace("sm_", "compute_")
        options = [f"--gpu-architecture={target}".encode(), *(option.encode() for option in flags)]
        failed = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = _result(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
        if failed:
            raise RuntimeError(log)
        return _result(library, program, GETTERS[kind]), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _result(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    data = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(program, data))
    return data.raw


def _check(library: ctypes.CDLL, status: int) -> None:
    if status:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"NVRTC: {library.nvrtcGetErrorString(status).decode()}")


# --- nvcc -----------------------------------------------------------------------------------------------------------


@cache
def _nvcc_architectures(nvcc: str) -> tuple[str, ...]:
    import subprocess

    return tuple(subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True).stdout.split())


def _nvcc(nvcc: str, text: str, architecture: str, kind: str, options: Sequence[str]) -> tuple[bytes, str]:
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "kernel.cu", Path(folder) / f"kernel.{kind}"
        source.write_text(text, encoding="utf-8")
        command = [nvcc, f"-{kind}", f"-arch={architecture}", *options, "-o", str(result), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return result.read_bytes() + b"\0" * (kind == "ptx"), done.stderr.strip()


def in_wheels(packages: Iterable[str], name: str) -> Iterator[str]:
    """Return the paths of libraries with this file name prefix, in the order of the packages."""
    import importlib.metadata

    for package in packages:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        yield from (str(file.locate()) for file in files if file.name.startswith(name))
