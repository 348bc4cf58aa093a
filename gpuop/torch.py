"""Pipelines as functions of PyTorch's tensors: autograd, double backward, `torch.func`, `torch.compile`, CUDA and CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

try:
    import torch as _  # noqa: F401 - what is missing is said here
except ImportError as _missing:
    raise ImportError(f"gpuop.torch works on tensors of PyTorch ({_missing}): `pip install torch`") from None

from gpuop.base.errors import missing
from gpuop.frameworks.torch_module import Module
from gpuop.frameworks.torch_operator import wrap

__all__ = ["Module", "wrap"]


def __dir__() -> list[str]:
    return list(__all__)


if not TYPE_CHECKING:  # a checker is to say of a name that there is none

    def __getattr__(name: str) -> NoReturn:
        raise missing(__name__, name, __all__)
