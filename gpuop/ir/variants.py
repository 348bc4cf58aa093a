"""Calls of multi-versioned operators: the kernel is chosen for a device before any fusion."""

from __future__ import annotations

import hashlib
from typing import Any

from gpuop.base.errors import SemanticError
from gpuop.base.records import dataclass
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.target import Target
from gpuop.ir.target_expressions import Known, Plain, evaluate

Parameters = tuple[tuple[str, Any], ...]


def shown(parameters: Parameters) -> str:
    """Parameters as they are stored and told of."""
    return ", ".join(f"{name}={value!r}" for name, value in parameters)


@dataclass(frozen=True, slots=True)
class Variant:
    """A kernel, one of several that compute the same.

    Attributes:
        identity: of the kernel.
        inputs: which of the call's inputs it reads.
        parameters: what it was recorded with.
        grid: target expressions, with the values that its grid was recorded for, or that it is for.
    """

    kernel: Kernel
    identity: str
    inputs: tuple[int, ...]
    parameters: Parameters = ()
    grid: tuple[tuple[Known, Plain], ...] = ()

    def suits(self, target: Target) -> bool:
        return all(evaluate(extent, target) == n for extent, n in self.grid)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Variants(Launchable):
    """Placeholder for the kernel of a call until a plan is made; no plan launches it.

    Attributes:
        variants: without measurements, the first that suits a target runs.
    """

    variants: tuple[Variant, ...]

    @property
    def has_dynamic(self) -> bool:
        return any(variant.kernel.has_dynamic for variant in self.variants)

    @property
    def acts(self) -> bool:
        return any(variant.kernel.acts for variant in self.variants)

    def fitting(self, target: Target) -> tuple[Variant, ...]:
        """The variants whose grid is that of the target: one for each choice of parameters.

        Raises:
            SemanticError: there is none, as the target has facts that no other one has; or a table has no entry for it.
        """
        result = tuple(variant for variant in self.variants if variant.suits(target))
        if not result:
            raise SemanticError(f"`{self.name}` has no thread grid for {target}; choose it from a table", self.loc)
        return result


def identity_of(variants: tuple[Variant, ...]) -> str:
    """A digest that is equal for equal kernels with equal parameters."""
    parts = (repr((v.identity, v.inputs, shown(v.parameters), v.grid)) for v in variants)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
