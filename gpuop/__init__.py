"""gpuop: operators on tensor fields, written in Python, fused, and run on any GPU, or on the CPU where there is none."""

from typing import TYPE_CHECKING, NoReturn

import numpy

import gpuop.array_namespace
import gpuop.cog
import gpuop.fft
import gpuop.linalg
import gpuop.ndimage
import gpuop.providers
import gpuop.random  # noqa: F401 - the library's modules are there at once, and providers sets what fields ask of layers above
from gpuop.bundles.bundle import Bundle, load_bundle
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.kinds_of_field import (
    ColorField,
    ComplexField,
    MatrixField,
    Parameter,
    ScalarField,
    VectorField,
    fromfunction,
    is_big_tensor,
)
from gpuop.dsl.operators.decorator import operator
from gpuop.dsl.operators.gpu_operator import GPUOperator
from gpuop.dsl.operators.host import HostOperator
from gpuop.dsl.recorder.precisions import precision
from gpuop.errors import (
    ArgumentError,
    CompileError,
    DeviceError,
    GpuopError,
    KernelWarning,
    MissingError,
    SemanticError,
    UnsupportedError,
    missing,
)
from gpuop.evaluation import evaluate, release
from gpuop.graphs.compute_graph import ComputeGraph
from gpuop.graphs.streams import Actuator, Sensor
from gpuop.ir.dims import Dims
from gpuop.ir.types import FieldType, Shape
from gpuop.iterate import iterate
from gpuop.ops.device_operator import DeviceOperator
from gpuop.ops.evenly_spaced import arange, linspace, meshgrid
from gpuop.ops.making import full, ones, zeros
from gpuop.ops.reduce_function import reduce
from gpuop.ops.scans import scan
from gpuop.ops.updating import updated
from gpuop.passes.schedules.pinning import schedule
from gpuop.pipelines.pipeline import pipeline
from gpuop.runtime.devices import devices, set_device, use_device
from gpuop.runtime.devices import open_device as device
from gpuop.runtime.events import Event
from gpuop.runtime.queues import queue
from gpuop.runtime.timeline import profile
from gpuop.runtime.tuning.modes import tuning
from gpuop.streaming.stream import stream
from gpuop.submission import pinned, submit
from gpuop.tune import tune

__version__ = "0.1.0"
__all__ = [
    "Actuator",
    "ArgumentError",
    "Bundle",
    "ColorField",
    "CompileError",
    "ComplexField",
    "ComputeGraph",
    "DeviceError",
    "DeviceOperator",
    "Dims",
    "Event",
    "Field",
    "FieldType",
    "GPUOperator",
    "GpuopError",
    "HostOperator",
    "KernelWarning",
    "MatrixField",
    "Parameter",
    "ScalarField",
    "SemanticError",
    "Sensor",
    "Shape",
    "UnsupportedError",
    "VectorField",
    "arange",
    "device",
    "devices",
    "evaluate",
    "fromfunction",
    "full",
    "is_big_tensor",
    "iterate",
    "linspace",
    "load_bundle",
    "meshgrid",
    "ones",
    "operator",
    "pinned",
    "pipeline",
    "precision",
    "profile",
    "queue",
    "reduce",
    "release",
    "scan",
    "schedule",
    "set_device",
    "stream",
    "submit",
    "tune",
    "tuning",
    "updated",
    "use_device",
    "zeros",
]  # fmt: skip


MODULES = ("fft", "linalg", "ndimage", "random")


def __dir__() -> list[str]:
    return [*__all__, *MODULES, "__version__", "dsl"]


if not TYPE_CHECKING:  # a checker is to say of a name that there is none

    def __getattr__(name: str) -> NoReturn:
        if name in services.array_functions or isinstance(getattr(numpy, name, None), numpy.ufunc):
            raise MissingError(f"{__name__} has no `{name}`: NumPy's functions take fields, as `np.{name}(field)`")
        raise missing(__name__, name, __all__)
