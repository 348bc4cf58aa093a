"""One primitive of JAX for all pipelines: it takes arrays and the name of a function of arrays.

Its derivatives are functions of arrays too: the tangent of "blur" is "blur|push 1", which is linear in its last arguments, and the
transposed of that is "blur|pull 1 1". So `grad`, `jvp`, `linearize`, `vmap` and `jit` of JAX go through one primitive.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental.buffer_callback import Buffer, ExecutionContext, buffer_callback
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from gpuop.base.errors import SemanticError, described
from gpuop.engine.interop import numpy_dtype
from gpuop.engine.jit.pipeline import Pipeline
from gpuop.frameworks.array_function import array_function, function_of
from gpuop.frameworks.placement import has_cuda, on_cuda, on_host
from gpuop.gradients.values import is_differentiable
from gpuop.ir.bfloat16 import BFLOAT16
from gpuop.ir.types import FieldType
from gpuop.runtime.cuda.xla_arrays import XlaArray, in_stream

call_p = Primitive("gpuop_call")
call_p.multiple_results = True


def wrap(pipeline: Any) -> Callable[..., Any]:
    """Make of a pipeline a function of JAX's arrays, under `jit`, `grad`, `jvp`, `linearize` and `vmap`.

        blur = gpuop.jax.wrap(gaussian)
        jax.grad(lambda image: (blur(image, sigma=2.0) ** 2).sum())(image)

    Derivatives are gpuop's, of the user's own kernels, and fused, in both modes and of any order. Arrays of CUDA are used in place,
    on their device and in the stream of XLA; those of the CPU on OpenCL's CPU device, or else on the reference device. Arrays of
    other devices are copied to the host and back.

    Args:
        pipeline: a `gp.pipeline`; each array that it takes is one of JAX, or of NumPy, here, and what is no array is a constant.

    Returns:
        A function of the pipeline's arguments, which gives an array, or a tuple of them. Where JAX has no numbers of 64 bits, its
        results have 32.

    Raises:
        SemanticError: no pipeline, a call without arrays, or as of the pipeline, when JAX traces the call. What has no derivative
            is refused at its line when JAX differentiates.
    """
    if not isinstance(pipeline, Pipeline):
        raise SemanticError(
            f"gpuop.jax.wrap takes a pipeline, not {described(pipeline)}; put `@gp.pipeline` on a function that makes Fields of "
            "arrays, as `gp.ScalarField(image)`, and calls operators"
        )

    @functools.wraps(pipeline.function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _called(pipeline, args, kwargs)

    return wrapped


def _called(pipeline: Pipeline, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    values = (*args, *kwargs.values())
    places = [isinstance(value, (jax.Array, np.ndarray)) for value in values]
    if not any(places):
        raise SemanticError(
            f"`{pipeline.name}` is wrapped for arrays, and this call has none; call the pipeline itself"
        )
    arrays = [value for value, place in zip(values, places, strict=True) if place]
    constants = tuple(value for value, place in zip(values, places, strict=True) if not place)
    mask = "".join("1" if place else "0" for place in places)
    function = function_of(pipeline, mask, constants, tuple(kwargs))
    if not jax.config.jax_enable_x64:
        function = function.narrowed()
    results = call_p.bind(*map(jax.numpy.asarray, arrays), function=function.name)
    return tuple(results) if function.is_several else results[0]


def _kinds(function: str, arrays: Sequence[Any]) -> tuple[FieldType, ...]:
    return array_function(function).result_types([(tuple(a.shape), numpy_dtype(a)) for a in arrays])


def _dtype(kind: FieldType) -> Any:
    return jax.numpy.bfloat16 if kind.dtype == BFLOAT16 else kind.array_dtype


def _abstract(*arrays: Any, function: str) -> list[jax.core.ShapedArray]:
    return [jax.core.ShapedArray(kind.array_shape, _dtype(kind)) for kind in _kinds(function, arrays)]


def _specs(function: str, arrays: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in _abstract(*arrays, function=function)]


def _by_copies(*arrays: Any, function: str) -> list[Any]:
    """The call where gpuop has no device for the arrays: they go to the host and back."""

    def computed(*copies: Any) -> list[Any]:
        with on_host():
            return array_function(function)([np.asarray(copy) for copy in copies])

    return list(jax.pure_callback(computed, _specs(function, arrays), *arrays))


def _in_place(*arrays: Any, function: str) -> list[Any]:
    """The call by a callback that gets the memory of arrays and results; it calls nothing of JAX."""

    def compute(context: ExecutionContext, outs: Sequence[Buffer], *args: Buffer) -> None:
        with on_host():
            array_function(function).write(list(map(np.asarray, args)), list(map(np.asarray, outs)))

    return list(buffer_callback(compute, _specs(function, arrays))(*arrays))


def _in_stream(*arrays: Any, function: str) -> list[Any]:
    """The same for arrays of CUDA, in the stream of XLA; nothing waits."""
    if not has_cuda():
        return _by_copies(*arrays, function=function)

    def compute(context: ExecutionContext, outs: Sequence[Buffer], *args: Buffer) -> None:
        stream = context.stream
        with on_cuda(args[0].__dlpack_device__()[1]), in_stream(stream):
            array_function(function).write([XlaArray(a, stream) for a in args], [XlaArray(a, stream) for a in outs])

    return list(buffer_callback(compute, _specs(function, arrays))(*arrays))


def _push(primals: Sequence[Any], tangents: Sequence[Any], function: str) -> tuple[list[Any], list[Any]]:
    """The rule of forward mode."""
    results = call_p.bind(*primals, function=function)
    present = [type(tangent) is not ad.Zero for tangent in tangents]
    push = array_function(function).push(present)
    moving = [tangent for tangent, flag in zip(tangents, present, strict=True) if flag]
    slopes = iter(call_p.bind(*primals, *moving, function=push.name))
    differentiable = map(is_differentiable, _kinds(function, primals))
    return results, [next(slopes) if flag else _zero(r) for flag, r in zip(differentiable, results, strict=True)]


def _zero(result: Any) -> ad.Zero:
    """The tangent of integers."""
    return ad.Zero(jax.typeof(result).to_tangent_aval())


def _transposed(bars: Sequence[Any], *arguments: Any, function: str) -> list[Any]:
    """The rule of the functions that are linear in their last arguments: those of tangents."""
    base, _, verb = function.rpartition("|push ")
    if not base or " " in verb:
        raise SemanticError(f"`{function}` is not linear")
    own = array_function(base)
    residuals, tangents = arguments[: own.count], arguments[own.count :]
    wanted = iter([ad.is_undefined_primal(tangent) for tangent in tangents])
    mask = [flag == "1" and next(wanted) for flag in verb]
    each = iter(bars)
    outs = [next(each) if is_differentiable(kind) else None for kind in _kinds(base, residuals)]
    present = [bar for bar in outs if bar is not None and type(bar) is not ad.Zero]
    pull = own.pull(mask, [bar is not None and type(bar) is not ad.Zero for bar in outs])
    gradients = iter(call_p.bind(*residuals, *present, function=pull.name))
    return [None] * own.count + [next(gradients) if ad.is_undefined_primal(t) else None for t in tangents]


def _mapped(arrays: Sequence[Any], dims: Sequence[Any], function: str) -> tuple[list[Any], list[int]]:
    """The rule over one more axis."""
    each = zip(arrays, dims, strict=True)
    moved = [a if dim is None else jax.numpy.moveaxis(a, dim, 0) for a, dim in each]
    mapped = array_function(function).mapped([dim is not None for dim in dims])
    results = call_p.bind(*moved, function=mapped.name)
    return results, [0] * len(results)


@functools.partial(jax.jit, static_argnames="function")
def _eager(*arrays: Any, function: str) -> list[Any]:
    return call_p.bind(*arrays, function=function)  # type: ignore[no-any-return]


call_p.def_abstract_eval(_abstract)
call_p.def_impl(_eager)
for platform, lowered in ((None, _by_copies), ("cpu", _in_place), ("cuda", _in_stream)):
    mlir.register_lowering(call_p, mlir.lower_fun(lowered, multiple_results=True), platform)
ad.primitive_jvps[call_p] = _push
ad.primitive_transposes[call_p] = _transposed
batching.primitive_batchers[call_p] = _mapped
