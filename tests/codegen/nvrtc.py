"""CUDA C++ compiled where there is no GPU: by NVRTC, or nvcc; skips where there is neither."""

from __future__ import annotations

import shutil

import pytest

from gpuop.runtime.cuda import nvrtc

OPTIONS = (*nvrtc.OPTIONS, "--ptxas-options=-O0")  # nobody runs what is made


def ptx_of(source: str, architecture: str) -> str:
    """PTX, for an architecture as "compute_90"; skips where there is no NVRTC."""
    if not nvrtc.architectures():
        pytest.skip("NVRTC's wheel (nvidia-cuda-nvrtc) is not installed")
    return nvrtc.compile_cuda(source, architecture.replace("compute_", "sm_"), "ptx").decode().rstrip("\0")


def compile_cuda(source: str, architecture: str) -> None:
    """Compile to a cubin.

    Raises:
        RuntimeError: with the compiler's log.
    """
    if not nvrtc.architectures() and not shutil.which("nvcc"):
        pytest.skip("neither NVRTC's wheel (nvidia-cuda-nvrtc) nor nvcc is installed")
    nvrtc._compiled(source, architecture, "cubin", OPTIONS)
