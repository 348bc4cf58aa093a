"""gpuop: operators on tensor fields, written in Python, fused, and run on any GPU, or on the CPU if there is none.

Names are loaded when they are first used (PEP 562): a program loads what it needs, and `import gpuop` nothing of gpuop, which is
also safe while threads import its modules. Checkers and editors read the stub beside, which docs/make_stub.py makes of `NAMES`.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
MODULES = ("cog", "dsl", "fft", "linalg", "ndimage", "random")
NAMES = {  # definition of each name
    "Actuator": "gpuop.engine.graphs.sensors.Actuator",
    "ArgumentError": "gpuop.base.errors.ArgumentError",
    "Bundle": "gpuop.engine.bundles.bundle.Bundle",
    "ColorField": "gpuop.dsl.fields.field_types.ColorField",
    "CompileError": "gpuop.base.errors.CompileError",
    "ComplexField": "gpuop.dsl.fields.field_types.ComplexField",
    "ComputeGraph": "gpuop.engine.graphs.compute_graph.ComputeGraph",
    "DeviceError": "gpuop.base.errors.DeviceError",
    "DeviceOperator": "gpuop.ops.device_operator.DeviceOperator",
    "Dims": "gpuop.ir.dims.Dims",
    "Event": "gpuop.runtime.queues.Event",
    "Field": "gpuop.dsl.fields.field.Field",
    "FieldType": "gpuop.ir.types.FieldType",
    "GPUOperator": "gpuop.dsl.operators.gpu_operator.GPUOperator",
    "GpuopError": "gpuop.base.errors.GpuopError",
    "HostOperator": "gpuop.dsl.operators.host_operator.HostOperator",
    "KernelWarning": "gpuop.base.errors.KernelWarning",
    "MatrixField": "gpuop.dsl.fields.field_types.MatrixField",
    "Parameter": "gpuop.dsl.fields.field_types.Parameter",
    "ScalarField": "gpuop.dsl.fields.field_types.ScalarField",
    "SemanticError": "gpuop.base.errors.SemanticError",
    "Sensor": "gpuop.engine.graphs.sensors.Sensor",
    "Shape": "gpuop.ir.types.Shape",
    "UnsupportedError": "gpuop.base.errors.UnsupportedError",
    "VectorField": "gpuop.dsl.fields.field_types.VectorField",
    "arange": "gpuop.ops.create.evenly_spaced.arange",
    "asarray": "gpuop.dsl.fields.field_types.asarray",
    "checkpoint": "gpuop.gradients.checkpoint.checkpoint",
    "device": "gpuop.runtime.devices.open_device",
    "devices": "gpuop.runtime.devices.devices",
    "evaluate": "gpuop.engine.evaluate.evaluate",
    "from_dlpack": "gpuop.dsl.fields.field_types.from_dlpack",
    "fromfunction": "gpuop.dsl.fields.field_types.fromfunction",
    "full": "gpuop.ops.create.computed_fields.full",
    "is_big_tensor": "gpuop.dsl.fields.field_types.is_big_tensor",
    "grad": "gpuop.gradients.reverse.grad",
    "hvp": "gpuop.gradients.jvp.hvp",
    "iterate": "gpuop.engine.iterate.iterate",
    "jvp": "gpuop.gradients.jvp.jvp",
    "linearize": "gpuop.gradients.jvp.linearize",
    "linspace": "gpuop.ops.create.evenly_spaced.linspace",
    "load_bundle": "gpuop.engine.bundles.bundle.load_bundle",
    "meshgrid": "gpuop.ops.create.evenly_spaced.meshgrid",
    "ones": "gpuop.ops.create.computed_fields.ones",
    "operator": "gpuop.dsl.operators.decorator.operator",
    "pinned": "gpuop.engine.async_evaluation.pinned",
    "pipeline": "gpuop.engine.jit.pipeline.pipeline",
    "precision": "gpuop.dsl.recorder.precisions.precision",
    "profile": "gpuop.runtime.profile.timeline.profile",
    "queue": "gpuop.runtime.queues.queue",
    "reduce": "gpuop.ops.reduce.user_function.reduce",
    "release": "gpuop.engine.evaluate.release",
    "scan": "gpuop.ops.scan.scans.scan",
    "schedule": "gpuop.passes.schedules.pinning.schedule",
    "set_device": "gpuop.runtime.devices.set_device",
    "stop_gradient": "gpuop.gradients.stop_gradient.stop_gradient",
    "stream": "gpuop.scaleout.stream.stream.stream",
    "submit": "gpuop.engine.async_evaluation.submit",
    "tune": "gpuop.engine.tune.tune",
    "tuning": "gpuop.runtime.tuning.modes.tuning",
    "updated": "gpuop.ops.select.update.updated",
    "vmap": "gpuop.transforms.vmap.vmap",
    "use_device": "gpuop.runtime.devices.use_device",
    "value_and_grad": "gpuop.gradients.reverse.value_and_grad",
    "vjp": "gpuop.gradients.reverse.vjp",
    "zeros": "gpuop.ops.create.computed_fields.zeros",
}
__all__ = [*NAMES]


def __dir__() -> list[str]:
    return [*__all__, *MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return _module(f"{__name__}.{name}")
    if name in NAMES:
        module, _, own = NAMES[name].rpartition(".")
        value = globals()[name] = getattr(_module(module), own)
        return value
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise _missing(name)


def _module(name: str) -> Any:
    return import_module("gpuop.base.lazy").imported(name)


def _missing(name: str) -> AttributeError:
    """Error for a missing name of gpuop."""
    errors, services = import_module("gpuop.base.errors"), import_module("gpuop.dsl.fields.services")
    numpy = import_module("numpy")
    error: AttributeError = errors.missing(__name__, name, __all__)
    if name in services.array_functions or isinstance(getattr(numpy, name, None), numpy.ufunc):
        error = errors.MissingError(f"{__name__} has no `{name}`: NumPy functions take fields, as `np.{name}(field)`")
    return error
