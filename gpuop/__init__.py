"""gpuop: operators on tensor fields, written in Python, fused, and run on any GPU, or on the CPU where there is none.

Names are loaded when they are first used (PEP 562): a program loads what it needs, and `import gpuop` nearly nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpuop.lazy import load

if TYPE_CHECKING:  # for checkers and editors; at run time `NAMES` says the same
    from gpuop import cog as cog
    from gpuop import dsl as dsl
    from gpuop import fft as fft
    from gpuop import linalg as linalg
    from gpuop import ndimage as ndimage
    from gpuop import random as random
    from gpuop.bundles.bundle import Bundle, load_bundle
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
    from gpuop.engine.iterate import iterate
    from gpuop.engine.tune import tune
    from gpuop.errors import (
        ArgumentError,
        CompileError,
        DeviceError,
        GpuopError,
        KernelWarning,
        SemanticError,
        UnsupportedError,
    )
    from gpuop.evaluation import evaluate, release
    from gpuop.graphs.compute_graph import ComputeGraph
    from gpuop.graphs.streams import Actuator, Sensor
    from gpuop.ir.dims import Dims
    from gpuop.ir.types import FieldType, Shape
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
MODULES = ("cog", "dsl", "fft", "linalg", "ndimage", "random")
NAMES = {  # where each is defined
    "Actuator": "gpuop.graphs.streams.Actuator",
    "ArgumentError": "gpuop.errors.ArgumentError",
    "Bundle": "gpuop.bundles.bundle.Bundle",
    "ColorField": "gpuop.dsl.fields.kinds_of_field.ColorField",
    "CompileError": "gpuop.errors.CompileError",
    "ComplexField": "gpuop.dsl.fields.kinds_of_field.ComplexField",
    "ComputeGraph": "gpuop.graphs.compute_graph.ComputeGraph",
    "DeviceError": "gpuop.errors.DeviceError",
    "DeviceOperator": "gpuop.ops.device_operator.DeviceOperator",
    "Dims": "gpuop.ir.dims.Dims",
    "Event": "gpuop.runtime.events.Event",
    "Field": "gpuop.dsl.fields.field.Field",
    "FieldType": "gpuop.ir.types.FieldType",
    "GPUOperator": "gpuop.dsl.operators.gpu_operator.GPUOperator",
    "GpuopError": "gpuop.errors.GpuopError",
    "HostOperator": "gpuop.dsl.operators.host.HostOperator",
    "KernelWarning": "gpuop.errors.KernelWarning",
    "MatrixField": "gpuop.dsl.fields.kinds_of_field.MatrixField",
    "Parameter": "gpuop.dsl.fields.kinds_of_field.Parameter",
    "ScalarField": "gpuop.dsl.fields.kinds_of_field.ScalarField",
    "SemanticError": "gpuop.errors.SemanticError",
    "Sensor": "gpuop.graphs.streams.Sensor",
    "Shape": "gpuop.ir.types.Shape",
    "UnsupportedError": "gpuop.errors.UnsupportedError",
    "VectorField": "gpuop.dsl.fields.kinds_of_field.VectorField",
    "arange": "gpuop.ops.evenly_spaced.arange",
    "device": "gpuop.runtime.devices.open_device",
    "devices": "gpuop.runtime.devices.devices",
    "evaluate": "gpuop.evaluation.evaluate",
    "fromfunction": "gpuop.dsl.fields.kinds_of_field.fromfunction",
    "full": "gpuop.ops.making.full",
    "is_big_tensor": "gpuop.dsl.fields.kinds_of_field.is_big_tensor",
    "iterate": "gpuop.engine.iterate.iterate",
    "linspace": "gpuop.ops.evenly_spaced.linspace",
    "load_bundle": "gpuop.bundles.bundle.load_bundle",
    "meshgrid": "gpuop.ops.evenly_spaced.meshgrid",
    "ones": "gpuop.ops.making.ones",
    "operator": "gpuop.dsl.operators.decorator.operator",
    "pinned": "gpuop.submission.pinned",
    "pipeline": "gpuop.pipelines.pipeline.pipeline",
    "precision": "gpuop.dsl.recorder.precisions.precision",
    "profile": "gpuop.runtime.timeline.profile",
    "queue": "gpuop.runtime.queues.queue",
    "reduce": "gpuop.ops.reduce_function.reduce",
    "release": "gpuop.evaluation.release",
    "scan": "gpuop.ops.scans.scan",
    "schedule": "gpuop.passes.schedules.pinning.schedule",
    "set_device": "gpuop.runtime.devices.set_device",
    "stream": "gpuop.streaming.stream.stream",
    "submit": "gpuop.submission.submit",
    "tune": "gpuop.engine.tune.tune",
    "tuning": "gpuop.runtime.tuning.modes.tuning",
    "updated": "gpuop.ops.updating.updated",
    "use_device": "gpuop.runtime.devices.use_device",
    "zeros": "gpuop.ops.making.zeros",
}


def __dir__() -> list[str]:
    return [*__all__, *MODULES, "__version__"]


if not TYPE_CHECKING:  # a checker is to say of a name that there is none

    def __getattr__(name: str) -> Any:
        if name in MODULES:
            return import_module(f"{__name__}.{name}")
        if name in NAMES:
            return load(__name__, NAMES, name)
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise _missing(name)


def _missing(name: str) -> AttributeError:
    """What is wrong with a name that is none of gpuop's."""
    errors, services = import_module("gpuop.errors"), import_module("gpuop.dsl.fields.services")
    numpy = import_module("numpy")
    error: AttributeError = errors.missing(__name__, name, __all__)
    if name in services.array_functions or isinstance(getattr(numpy, name, None), numpy.ufunc):
        error = errors.MissingError(f"{__name__} has no `{name}`: NumPy's functions take fields, as `np.{name}(field)`")
    return error
