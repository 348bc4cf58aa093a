"""gpuop: operators on tensor fields, written in Python, fused, and run on any GPU, or on the CPU where there is none."""

from gpuop.bundles import Bundle, load_bundle
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
from gpuop.dsl.host import HostOperator
from gpuop.dsl.operator import operator
from gpuop.errors import CompileError, DeviceError, GpuopError, SemanticError
from gpuop.graph import ComputeGraph
from gpuop.ir.types import FieldType, Shape
from gpuop.iterate import iterate
from gpuop.pipeline import pipeline
from gpuop.runtime.devices import devices, use_device
from gpuop.runtime.devices import open_device as device
from gpuop.session import evaluate
from gpuop.streams import Actuator, Sensor

__version__ = "0.1.0"
__all__ = [
    "Actuator", "Bundle", "ColorField", "CompileError", "ComplexField", "ComputeGraph", "DeviceError", "Field", "FieldType",
    "GPUOperator", "GpuopError", "HostOperator", "MatrixField", "Parameter", "ScalarField", "SemanticError", "Sensor", "Shape",
    "VectorField", "device", "devices", "evaluate", "fromfunction", "is_big_tensor", "iterate", "load_bundle", "operator",
    "pipeline", "use_device",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__, "__version__", "dsl"]
