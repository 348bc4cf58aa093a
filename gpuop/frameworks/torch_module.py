"""A pipeline as a module of PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from gpuop.base.errors import SemanticError
from gpuop.frameworks.torch_operator import wrap


class Module(torch.nn.Module):  # type: ignore[misc]
    """A module whose call is a pipeline's, some of whose arguments belong to the module.

        blur = gpuop.torch.Module(gaussian, sigma=torch.nn.Parameter(torch.tensor(2.0)))
        blur(images)

    Args:
        pipeline: as of `gpuop.torch.wrap`.
        arguments: arguments of the pipeline by name: a `torch.nn.Parameter` is trained, a tensor moves with the module and is
            saved with it, anything else is a constant.

    Raises:
        SemanticError: the pipeline has no such argument, or as of `gpuop.torch.wrap`.
    """

    def __init__(self, pipeline: Any, /, **arguments: Any) -> None:
        super().__init__()
        self.function = wrap(pipeline)
        for name in arguments:
            if name not in pipeline.signature.parameters:
                known = ", ".join(f"`{n}`" for n in pipeline.signature.parameters)
                raise SemanticError(f"pipeline `{pipeline.name}` has no argument `{name}`; it has {known}")
        self.names = tuple(arguments)
        self.constants: dict[str, Any] = {}
        for name, value in arguments.items():
            self._enter(name, value)

    def _enter(self, name: str, value: Any) -> None:
        if isinstance(value, torch.nn.Parameter):
            self.register_parameter(name, value)
        elif isinstance(value, torch.Tensor):
            self.register_buffer(name, value)
        else:
            self.constants[name] = value

    def extra_repr(self) -> str:
        """The pipeline and the names of the arguments that belong to the module."""
        return ", ".join([self.function.pipeline.name, *self.names])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the pipeline with the other arguments."""
        own = {n: self.constants[n] if n in self.constants else getattr(self, n) for n in self.names}
        return self.function(*args, **own, **kwargs)
