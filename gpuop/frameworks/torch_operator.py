"""One operator of PyTorch for all pipelines: it takes tensors and the name of a function of arrays.

Gradients and batches are functions of arrays too, so the operator is its own derivative: `gpuop::call(xs, "blur")` has the gradient
`gpuop::call([*xs, *bars], "blur|pull 1 1")`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from gpuop.base.errors import SemanticError, described
from gpuop.engine.interop import numpy_dtype
from gpuop.engine.jit.pipeline import Pipeline
from gpuop.frameworks.array_function import array_function, function_of
from gpuop.frameworks.placement import on_cuda, on_host
from gpuop.ir.bfloat16 import BFLOAT16
from gpuop.ir.types import FieldType

_names: dict[tuple[Any, ...], str] = {}  # of calls without constants
_pipelines: dict[str, Pipeline] = {}  # those that are wrapped, by the text that compiled graphs know them by


def wrap(pipeline: Any) -> TensorFunction:
    """Make of a pipeline a function of PyTorch's tensors with gradients.

        blur = gpuop.torch.wrap(gaussian)
        blur(images, sigma=2.0).square().sum().backward()

    Gradients are gpuop's, of the user's own kernels, and fused; backward passes may be differentiated again. It works under
    `torch.compile(fullgraph=True)`, `torch.func.grad`, `vmap` and `jacrev`. Tensors of CUDA are used in place, on their device and
    the current stream; tensors of the CPU on OpenCL's CPU device, or else on the reference device.

    Args:
        pipeline: a `gp.pipeline`; each array that it takes is a tensor here, and what is no tensor is a constant.

    Returns:
        A function of the pipeline's arguments, which gives a tensor, or a tuple of them.

    Raises:
        SemanticError: no pipeline; a call with tensors of several devices, or of a dtype that fields do not have, or as of the
            pipeline. What has no gradient is refused in the backward pass, at its line.
    """
    if not isinstance(pipeline, Pipeline):
        raise SemanticError(
            f"gpuop.torch.wrap takes a pipeline, not {described(pipeline)}; put `@gp.pipeline` on a function that makes Fields of "
            "arrays, as `gp.ScalarField(image)`, and calls operators"
        )
    return TensorFunction(pipeline)


class TensorFunction:
    """A pipeline as a function of tensors; it goes to other processes as its pipeline does.

    Args:
        pipeline: as of `wrap`.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        functools.update_wrapper(self, pipeline.function, updated=())
        self.pipeline, self.key = pipeline, f"{pipeline.name} {id(pipeline)}"
        _pipelines[self.key] = pipeline

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values()) if kwargs else args
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        constants = tuple([value for value in values if not isinstance(value, torch.Tensor)])
        places = "".join(["1" if isinstance(value, torch.Tensor) else "0" for value in values])
        name = _name_of(self.key, places, constants, tuple(kwargs))
        results = _call(tensors, name)
        return tuple(results) if _is_several(name) else results[0]

    def __repr__(self) -> str:
        return f"<gpuop.torch.wrap of {self.pipeline!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self.pipeline,)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _name_of(key: str, places: str, constants: tuple[Any, ...], names: tuple[str, ...]) -> str:
    call = key, places, names
    if not constants and call in _names:
        return _names[call]
    if "1" not in places:
        raise SemanticError(
            f"`{_pipelines[key].name}` is wrapped for tensors, and this call has none; call the pipeline itself"
        )
    name = function_of(_pipelines[key], places, constants, names).name
    if not constants:
        _names[call] = name
    return name


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _is_several(name: str) -> bool:
    return array_function(name).is_several


Applying = Callable[[Sequence[torch.Tensor], str], Sequence[torch.Tensor]]


def _call(tensors: Sequence[torch.Tensor], function: str) -> Sequence[torch.Tensor]:
    """Call a function of arrays: compilers see an operator, eager code and `torch.func` an autograd function.

    The autograd function that PyTorch makes of an operator takes longer, and `torch.func` refuses its gradients.
    """
    return (_operator if torch.compiler.is_compiling() else _function)(tensors, function)


def _operator(tensors: Sequence[torch.Tensor], function: str) -> Sequence[torch.Tensor]:
    return call(list(tensors), function)  # type: ignore[no-any-return]


def _function(tensors: Sequence[torch.Tensor], function: str) -> Sequence[torch.Tensor]:
    of = _TransformedCall if torch._C._are_functorch_transforms_active() else _EagerCall
    return of.apply(function, *tensors)  # type: ignore[no-any-return]


def _results(tensors: Sequence[torch.Tensor], function: str) -> list[torch.Tensor]:
    with _device_of(tensors):
        return array_function(function)([_plain(tensor) for tensor in tensors])


def _pulled(
    apply: Applying,
    tensors: Sequence[torch.Tensor],
    function: str,
    wanted: Sequence[bool],
    bars: Sequence[torch.Tensor | None],
) -> list[torch.Tensor | None]:
    """The gradients by the wanted tensors, None for the others."""
    present = [bar for bar in bars if bar is not None]
    if not present:
        return [None] * len(wanted)
    pull = array_function(function).pull(wanted, [bar is not None for bar in bars])
    gradients = iter(apply([*tensors, *map(_conjugate, present)], pull.name))
    return [_conjugate(next(gradients)) if flag else None for flag in wanted]


def _mapped(
    apply: Applying, dims: Sequence[int | None], tensors: Sequence[torch.Tensor], function: str
) -> tuple[Sequence[torch.Tensor], Sequence[int]]:
    """The results over one more axis, in front, and where it is."""
    moved = [tensor if dim is None else tensor.movedim(dim, 0) for tensor, dim in zip(tensors, dims, strict=True)]
    results = apply(moved, array_function(function).mapped([dim is not None for dim in dims]).name)
    return results, [0] * len(results)


class _EagerCall(torch.autograd.Function):  # type: ignore[misc]
    """The call of a function of arrays in eager code."""

    @staticmethod
    def forward(ctx: Any, function: str, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = tuple(_results(tensors, function))
        _keep(ctx, (function, *tensors), results)
        return results

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        present = [tangent for tangent in tangents if tangent is not None]
        push = array_function(ctx.function).push([tangent is not None for tangent in tangents])
        slopes = iter(_function([*ctx.saved_tensors, *present], push.name))
        return tuple(next(slopes) if kind.is_floating_point or kind.is_complex else None for kind in ctx.types)

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor | None) -> tuple[Any, ...]:
        return None, *_pulled(_function, ctx.saved_tensors, ctx.function, ctx.needs_input_grad[1:], bars)


class _TransformedCall(_EagerCall):
    """The same for the transformations of `torch.func`, whose arguments PyTorch looks up at each call by their signature."""

    @staticmethod
    def forward(function: str, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        return tuple(_results(tensors, function))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _keep(ctx, inputs, output)

    @staticmethod
    def vmap(info: Any, in_dims: Any, function: str, *tensors: torch.Tensor) -> tuple[Any, Any]:
        results, dims = _mapped(_function, in_dims[1:], tensors, function)
        return tuple(results), tuple(dims)


def _keep(ctx: Any, inputs: Sequence[Any], results: Sequence[torch.Tensor]) -> None:
    """Keep what derivatives need: the arguments alone."""
    ctx.function, *tensors = inputs
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)
    ctx.set_materialize_grads(False)
    ctx.types = [tensor.dtype for tensor in results]


@torch.library.custom_op("gpuop::call", mutates_args=())  # type: ignore[untyped-decorator]
def call(tensors: list[torch.Tensor], function: str) -> list[torch.Tensor]:
    """The call of a function of arrays in compiled code."""
    return _results(tensors, function)


@call.register_fake  # type: ignore[untyped-decorator]
def _(tensors: list[torch.Tensor], function: str) -> list[torch.Tensor]:
    specs = [(tuple(int(n) for n in t.shape), numpy_dtype(t)) for t in tensors]
    kinds = array_function(function).result_types(specs)
    return [tensors[0].new_empty(kind.array_shape, dtype=_torch_dtype(kind)) for kind in kinds]


def _setup(ctx: Any, inputs: tuple[list[torch.Tensor], str], output: list[torch.Tensor]) -> None:
    tensors, ctx.function = inputs
    ctx.save_for_backward(*tensors)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, bars: Sequence[torch.Tensor | None]) -> tuple[Any, None]:
    return _pulled(_operator, ctx.saved_tensors, ctx.function, list(ctx.needs_input_grad[0]), bars), None


call.register_autograd(_backward, setup_context=_setup)
call.register_vmap(lambda info, in_dims, tensors, function: _mapped(_operator, in_dims[0], tensors, function))


def _conjugate(tensor: torch.Tensor) -> torch.Tensor:
    """PyTorch's gradients of complex numbers are the conjugates of gpuop's, which are those of JAX."""
    return tensor.conj() if tensor.is_complex() else tensor


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor without a gradient, whose memory holds its values."""
    return tensor.detach().resolve_conj().resolve_neg()


def _torch_dtype(kind: FieldType) -> torch.dtype:
    result: torch.dtype = getattr(torch, BFLOAT16 if kind.dtype == BFLOAT16 else kind.array_dtype.name)
    return result


def _device_of(tensors: Sequence[torch.Tensor]) -> AbstractContextManager[Any]:
    """The context in which kernels run where the tensors are."""
    place = tensors[0].device
    if any(tensor.device != place for tensor in tensors):
        names = " and ".join(sorted({str(tensor.device) for tensor in tensors}))
        raise SemanticError(f"these tensors are on {names}; move them to one device, as with `tensor.to(device)`")
    if place.type == "cpu":
        return on_host()
    if place.type != "cuda":
        raise SemanticError(f"gpuop has no device for tensors on {place.type!r}; move them to the CPU, or to CUDA")
    return on_cuda(place.index)
