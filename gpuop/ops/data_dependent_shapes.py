"""Results whose sizes follow from values: these are evaluated when the function is called, as shapes are always known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.trace_effects import values_seen

LENGTH = "how long the result is"


def kept(name: str, advice: str, field: Field, what: str = LENGTH) -> Field:
    """A field whose values are on the device.

    Args:
        advice: what gives as much where there are no values.
        what: follows from values.

    Raises:
        SemanticError: it has none yet, as what is made of a pipeline's argument, a sensor or a state.
    """
    return _with_values(services.above.keep, name, advice, field, what)  # type: ignore[no-any-return]


def on_host(name: str, advice: str, field: Field) -> np.ndarray[Any, Any]:
    """A field's values, with errors as `kept` has them."""
    return _with_values(services.above.evaluate, name, advice, field)[0]  # type: ignore[no-any-return]


def _with_values(get: Callable[[Field], Any], name: str, advice: str, field: Field, what: str = LENGTH) -> Any:
    values_seen()
    try:
        return get(field)
    except SemanticError as unknown:
        raise SemanticError(f"{name}: {what} follows from values, which are not known here; {advice}") from unknown


def integers(*fields: Field) -> list[int]:
    """The values of fields of one number."""
    return [int(array) for array in services.above.evaluate(*fields)]
