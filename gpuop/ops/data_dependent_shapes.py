"""Results with data-dependent shapes: they are evaluated at the call, as shapes are always known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.sources import Deferred
from gpuop.dsl.recorder.trace_effects import values_seen
from gpuop.ir.values import NO_VALUES, Leaf, NoValues

LENGTH = "the length of the result"


def on_device(name: str, advice: str, field: Field, what: str = LENGTH) -> Field:
    """Return a field whose values are on the device.

    Args:
        advice: an alternative in words, for fields without values.
        what: the data-dependent property.

    Raises:
        SemanticError: it has no values yet, as a result of a pipeline's argument, a sensor or a state.
    """
    return _with_values(services.above.keep, name, advice, field, what)  # type: ignore[no-any-return]


def on_host(name: str, advice: str, field: Field) -> np.ndarray[Any, Any]:
    """Return a field's values, with the errors of `on_device`."""
    return _with_values(services.above.evaluate, name, advice, field)[0]  # type: ignore[no-any-return]


def _with_values(get: Callable[[Field], Any], name: str, advice: str, field: Field, what: str = LENGTH) -> Any:
    values_seen()
    try:
        return get(field)
    except SemanticError as unknown:
        raise SemanticError(f"{name}: {what} depends on values, which are not known here; {advice}") from unknown


def has_values(field: Field) -> bool:
    """Return whether a field's values are in memory, for good: of an array, or of an evaluated field."""
    source = field.node.source if isinstance(field.node, Leaf) else NO_VALUES
    return source.role == "constant" and source.version is None and not isinstance(source, (NoValues, Deferred))


def integers(*fields: Field) -> list[int]:
    """Return the values of fields of one number."""
    return [int(array) for array in services.above.evaluate(*fields)]
