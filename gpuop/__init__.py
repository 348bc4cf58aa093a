"""gpuop: operators on tensor fields, written in Python, fused, and run on any GPU, or on the CPU where there is none."""

from typing import Any

from gpuop.dsl.field import (
    ColorField,
    ComplexField,
    Field,
    MatrixField,
    Parameter,
    ScalarField,
    VectorField,
    fromfunction,
    is_big_tensor,
)
from gpuop.dsl.gpu_operator import GPUOperator
from gpuop.dsl.operator import operator
from gpuop.errors import CompileError, DeviceError, GpuopError, MissingError, SemanticError
from gpuop.graph import ComputeGraph
from gpuop.ir.types import FieldType, Shape
from gpuop.pipeline import pipeline
from gpuop.runtime.devices import devices, use_device
from gpuop.runtime.devices import open_device as device
from gpuop.session import evaluate

__version__ = "0.1.0"
__all__ = [
    "ColorField", "CompileError", "ComplexField", "ComputeGraph", "DeviceError", "Field", "FieldType", "GPUOperator", "GpuopError",
    "MatrixField", "Parameter", "ScalarField", "SemanticError", "Shape", "VectorField", "device", "devices", "evaluate",
    "fromfunction", "is_big_tensor", "operator", "pipeline", "use_device",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("Sensor", "Actuator", "HostOperator", "iterate", "load_bundle"):
        raise MissingError(f"gpuop.{name} is not available in this version")
    raise AttributeError(f"module 'gpuop' has no attribute {name!r}")
