"""The devices of all drivers, each with its opener."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from gpuop.runtime.cuda import device as cuda_device
from gpuop.runtime.opencl.device import OpenCL
from gpuop.runtime.opencl.discovery import device_list
from gpuop.runtime.reference.gpu_device import TARGETS, ReferenceGPU, described


@dataclass(frozen=True)
class Device:
    """A device.

    Attributes:
        name: "opencl:0", "reference", …
        description: its model and driver, for people.
        problem: the reason why it cannot be used, or None.
        aliases: other names of it, such as "opencl:gpu".
    """

    name: str
    description: str
    problem: str | None = None
    aliases: tuple[str, ...] = ()


def cuda_devices() -> list[tuple[Device, Any]]:
    problem = cuda_device.missing()
    if problem is not None:
        return [(Device("cuda:0", "NVIDIA GPU through CUDA", problem), None)]
    names = [(f"cuda:{number}", model) for number, model in enumerate(cuda_device.device_list())]
    return [
        (Device(name, f"{model} (CUDA)"), partial(cuda_device.Cuda, name, n)) for n, (name, model) in enumerate(names)
    ]


def opencl_devices() -> list[tuple[Device, Any]]:
    try:
        listed = device_list()
    except ImportError as missing:
        return [
            (
                Device("opencl:0", "OpenCL", f"{missing}; install it with `pip install '.[cpu]'` in gpuop's checkout"),
                None,
            )
        ]
    if not listed:
        return [
            (
                Device(
                    "opencl:0",
                    "OpenCL",
                    "pyopencl finds no driver; `pip install '.[cpu]'` in gpuop's checkout brings one for x86-64, or install PoCL",
                ),
                None,
            )
        ]
    devices, kinds = [], set()
    for number, (platform, device) in enumerate(sorted(listed, key=_rank)):
        kind = "gpu" if _is_gpu(device) else "cpu"
        alias = () if kind in kinds else (f"opencl:{kind}",)
        kinds.add(kind)
        name = f"opencl:{number}"
        devices.append(
            (Device(name, f"{device.name.strip()} ({platform})", None, alias), partial(OpenCL, name, platform, device))
        )
    return devices


def reference_gpus() -> list[tuple[Device, Any]]:
    """Return the interpreters of GPU kernels."""
    return [(Device(name, described(name)), partial(ReferenceGPU, name)) for name in TARGETS]


def _is_gpu(device: Any) -> bool:
    return bool(device.type & 4)  # CL_DEVICE_TYPE_GPU


def _rank(entry: tuple[str, Any]) -> tuple[bool, bool, str]:
    """GPUs first; of CPU drivers Intel's, whose compiler vectorises."""
    platform, device = entry
    return not _is_gpu(device), "intel" not in platform.lower(), platform
