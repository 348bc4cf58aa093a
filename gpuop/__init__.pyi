"""gpuop: operators on tensor fields, written in Python, fused, and run on any GPU, or on the CPU if there is none.

Names are loaded when they are first used (PEP 562): a program loads what it needs, and `import gpuop` nothing of gpuop, which is
also safe while threads import its modules. Checkers and editors read the stub beside, which docs/make_stub.py makes of `NAMES`."""

from gpuop import cog as cog
from gpuop import dsl as dsl
from gpuop import fft as fft
from gpuop import linalg as linalg
from gpuop import ndimage as ndimage
from gpuop import random as random
from gpuop.base.errors import ArgumentError as ArgumentError
from gpuop.base.errors import CompileError as CompileError
from gpuop.base.errors import DeviceError as DeviceError
from gpuop.base.errors import GpuopError as GpuopError
from gpuop.base.errors import KernelWarning as KernelWarning
from gpuop.base.errors import SemanticError as SemanticError
from gpuop.base.errors import UnsupportedError as UnsupportedError
from gpuop.dsl.fields.field import Field as Field
from gpuop.dsl.fields.field_types import ColorField as ColorField
from gpuop.dsl.fields.field_types import ComplexField as ComplexField
from gpuop.dsl.fields.field_types import MatrixField as MatrixField
from gpuop.dsl.fields.field_types import Parameter as Parameter
from gpuop.dsl.fields.field_types import ScalarField as ScalarField
from gpuop.dsl.fields.field_types import VectorField as VectorField
from gpuop.dsl.fields.field_types import asarray as asarray
from gpuop.dsl.fields.field_types import from_dlpack as from_dlpack
from gpuop.dsl.fields.field_types import fromfunction as fromfunction
from gpuop.dsl.fields.field_types import is_big_tensor as is_big_tensor
from gpuop.dsl.operators.decorator import operator as operator
from gpuop.dsl.operators.gpu_operator import GPUOperator as GPUOperator
from gpuop.dsl.operators.host_operator import HostOperator as HostOperator
from gpuop.dsl.recorder.precisions import precision as precision
from gpuop.engine.async_evaluation import pinned as pinned
from gpuop.engine.async_evaluation import submit as submit
from gpuop.engine.bundles.bundle import Bundle as Bundle
from gpuop.engine.bundles.bundle import load_bundle as load_bundle
from gpuop.engine.evaluate import evaluate as evaluate
from gpuop.engine.evaluate import release as release
from gpuop.engine.graphs.compute_graph import ComputeGraph as ComputeGraph
from gpuop.engine.graphs.sensors import Actuator as Actuator
from gpuop.engine.graphs.sensors import Sensor as Sensor
from gpuop.engine.iterate import iterate as iterate
from gpuop.engine.jit.pipeline import pipeline as pipeline
from gpuop.engine.tune import tune as tune
from gpuop.gradients.checkpoint import checkpoint as checkpoint
from gpuop.gradients.jvp import hvp as hvp
from gpuop.gradients.jvp import jvp as jvp
from gpuop.gradients.jvp import linearize as linearize
from gpuop.gradients.reverse import grad as grad
from gpuop.gradients.reverse import value_and_grad as value_and_grad
from gpuop.gradients.reverse import vjp as vjp
from gpuop.gradients.stop_gradient import stop_gradient as stop_gradient
from gpuop.ir.dims import Dims as Dims
from gpuop.ir.types import FieldType as FieldType
from gpuop.ir.types import Shape as Shape
from gpuop.ops.create.computed_fields import full as full
from gpuop.ops.create.computed_fields import ones as ones
from gpuop.ops.create.computed_fields import zeros as zeros
from gpuop.ops.create.evenly_spaced import arange as arange
from gpuop.ops.create.evenly_spaced import linspace as linspace
from gpuop.ops.create.evenly_spaced import meshgrid as meshgrid
from gpuop.ops.device_operator import DeviceOperator as DeviceOperator
from gpuop.ops.reduce.user_function import reduce as reduce
from gpuop.ops.scan.scans import scan as scan
from gpuop.ops.select.update import updated as updated
from gpuop.passes.schedules.pinning import schedule as schedule
from gpuop.runtime.devices import devices as devices
from gpuop.runtime.devices import open_device as device
from gpuop.runtime.devices import set_device as set_device
from gpuop.runtime.devices import use_device as use_device
from gpuop.runtime.profile.timeline import profile as profile
from gpuop.runtime.queues import Event as Event
from gpuop.runtime.queues import queue as queue
from gpuop.runtime.tuning.modes import tuning as tuning
from gpuop.scaleout.stream.stream import stream as stream
from gpuop.transforms.vmap import vmap as vmap

__version__: str
MODULES: tuple[str, ...]
NAMES: dict[str, str]
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
    "asarray",
    "checkpoint",
    "device",
    "devices",
    "evaluate",
    "from_dlpack",
    "fromfunction",
    "full",
    "is_big_tensor",
    "grad",
    "hvp",
    "iterate",
    "jvp",
    "linearize",
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
    "stop_gradient",
    "stream",
    "submit",
    "tune",
    "tuning",
    "updated",
    "vmap",
    "use_device",
    "value_and_grad",
    "vjp",
    "zeros",
]
