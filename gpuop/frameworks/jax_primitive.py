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
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from gpuop.base.errors import SemanticError, described
from gpuop.engine.jit.pipeline import Pipeline
from gpuop.frameworks.array_function import array_function, function_of
from gpuop.frameworks.placement import on_host
from gpuop.gradients.values import is_differentiable
from gpuop.ir.types import FieldType

call_p = Primitive("gpuop_call")
call_p.multiple_results = True


def wrap(pipeline: Any) -> Callable[..., Any]:
    """Make of a pipeline a function of JAX's arrays, under `jit`, `grad`, `jvp`, `linearize` and `vmap`.

        blur = gpuop.jax.wrap(gaussian)
        jax.grad(lambda image: (blur(image, sigma=2.0) ** 2).sum())(image)

    Derivatives are gpuop's, of the user's own kernels, and fused, in both modes and of any order. Kernels run on OpenCL's CPU
    device, or else on the reference device; the arrays of other devices are copied there and back.

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
    results = call_p.bind(*map(jax.numpy.asarray, arrays), function=function.name)
    return tuple(results) if function.is_several else results[0]


def _kinds(function: str, arrays: Sequence[Any]) -> tuple[FieldType, ...]:
    return array_function(function).result_types([(tuple(a.shape), np.dtype(a.dtype)) for a in arrays])


def _abstract(*arrays: Any, function: str) -> list[jax.core.ShapedArray]:
    shapes = [(kind.array_shape, jax.dtypes.canonicalize_dtype(kind.array_dtype)) for kind in _kinds(function, arrays)]
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in shapes]


def _computed(function: str, dtypes: Sequence[Any], arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """The results for arrays of NumPy; a callback of JAX calls nothing of JAX."""
    host = [np.asarray(array) for array in arrays]
    with on_host():
        results = array_function(function)(host)
    return [result.astype(dtype, copy=False) for result, dtype in zip(results, dtypes, strict=True)]


def _by_callback(*arrays: Any, function: str) -> list[Any]:
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in _abstract(*arrays, function=function)]
    dtypes = [shape.dtype for shape in shapes]
    return list(jax.pure_callback(lambda *xs: _computed(function, dtypes, xs), shapes, *arrays))


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


call_p.def_abstract_eval(_abstract)
call_p.def_impl(jax.jit(_by_callback, static_argnames="function"))
mlir.register_lowering(call_p, mlir.lower_fun(_by_callback, multiple_results=True))
ad.primitive_jvps[call_p] = _push
ad.primitive_transposes[call_p] = _transposed
batching.primitive_batchers[call_p] = _mapped
