"""CUDA C++ through NVRTC, of NVIDIA's wheel: needs neither a GPU nor a driver. `nvcc` where there is no wheel."""

from __future__ import annotations

import ctypes
import importlib.metadata
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from gpuop.codegen.cuda import OPTIONS

PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


@cache
def _library() -> ctypes.CDLL | None:
    for package in PACKAGES:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name.startswith("libnvrtc.so"):
                return ctypes.CDLL(str(file.locate()))
    return None


def ptx_of(source: str, architecture: str) -> str:
    """PTX, for an architecture as "compute_90"; skips where there is no NVRTC."""
    library = _library()
    if library is None:
        pytest.skip("NVRTC's wheel (nvidia-cuda-nvrtc) is not installed")
    return _nvrtc(library, source, architecture)


def compile_cuda(source: str, architecture: str) -> None:
    """Compile to a cubin.

    Raises:
        RuntimeError: with the compiler's log.
    """
    library = _library()
    if library is not None:
        _nvrtc(library, source, architecture)
    elif shutil.which("nvcc"):
        _nvcc(source, architecture)
    else:
        pytest.skip("neither NVRTC's wheel (nvidia-cuda-nvrtc) nor nvcc is installed")


def _nvrtc(library: ctypes.CDLL, source: str, architecture: str) -> str:
    """The program's PTX."""
    program = ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None) == 0
    options = [f"--gpu-architecture={architecture}", *OPTIONS]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), given)
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    if failed:
        library.nvrtcDestroyProgram(ctypes.byref(program))
        raise RuntimeError(log.value.decode())
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, text)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return text.value.decode()


def _nvcc(source: str, architecture: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cu"
        path.write_text(source)
        done = subprocess.run(
            ["nvcc", "-cubin", f"-arch={architecture}", *OPTIONS, "-o", f"{folder}/kernel.cubin", str(path)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
