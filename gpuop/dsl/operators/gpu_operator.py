"""`with gp.GPUOperator(…):`, the operator form of Cog, and the outputs of both forms."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from gpuop.base.errors import Loc, SemanticError, described, here, naming_arguments
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.names import names_given
from gpuop.dsl.operators.finish import finish
from gpuop.dsl.recorder.error_hints import explain
from gpuop.dsl.recorder.fill_values import fill_of
from gpuop.dsl.recorder.frames import check_frame
from gpuop.dsl.recorder.outputs import OutputSlot
from gpuop.dsl.recorder.precisions import checked, chosen
from gpuop.dsl.recorder.recorder import Recorder, caller
from gpuop.ir.axis_limit import check_axes
from gpuop.ir.kernel import Launchable
from gpuop.ir.nodes import FieldParam
from gpuop.ir.text import identity
from gpuop.ir.types import FieldType
from gpuop.ir.values import Call, Node, Result

MAX_OUTPUTS = 10


def slots_of(types: Sequence[Any], default: Any, declared: bool = True) -> list[OutputSlot]:
    """Outputs to be recorded, `_out0` first."""
    if not 1 <= len(types) <= MAX_OUTPUTS:
        raise SemanticError(f"an operator has 1 to {MAX_OUTPUTS} outputs, not {len(types)}")
    for t in types:
        if not isinstance(t, FieldType):
            shape = f", or `gp.FieldType({types!r})`" if isinstance(t, int) else ""
            raise SemanticError(
                f"an output is declared by a FieldType, not by {described(t)}; write `field.type`{shape}"
            )
        check_axes(t)
    defaults = default if isinstance(default, (tuple, list)) else (default,) * len(types)
    if len(defaults) != len(types):
        raise SemanticError(f"`default=` has {len(defaults)} values, and the outputs are {len(types)}")
    return [
        OutputSlot(FieldParam(f"out{k}", t.folded), declared, t, None if d is None else fill_of(t, d, "default"))
        for k, (t, d) in enumerate(zip(types, defaults, strict=True))
    ]


def results_of(
    kernel: Launchable, key: str, inputs: tuple[Node, ...], loc: Loc | None, kinds: Sequence[FieldType]
) -> tuple[Field, ...]:
    """Fields that a kernel computes from these inputs, with these types."""
    call = Call(kernel, key, inputs, loc, names_given(len(kernel.outputs)))
    fields: list[Field] = []
    for k, kind in enumerate(kinds):  # a generator would be more calls
        fields += (Field.of(Result(call, k), kind=kind),)
    return tuple(fields)


class GPUOperator:
    """Cog's form: host code around a recorded body.

        with gp.GPUOperator(field.type) as op:
            _writeTensor(_out0, _readTensor(field) / 2)
        return op.output

    Args:
        types: a FieldType for each output, 1 to 10.
        name: of the operator, by default the enclosing function's.
        default: what an output holds where nothing is written; a number, or a tuple with one for each output.
        precision: as of `gp.operator`.

    Raises:
        SemanticError: for what is wrong in the body, at its line; from the end of the `with` for what only that shows.
    """

    @naming_arguments
    def __init__(
        self, *types: FieldType, name: str | None = None, default: Any = None, precision: str | None = None
    ) -> None:
        self._types, self._default, self._name = types, default, name
        self._precision = chosen() if precision is None else checked(precision)
        self._outputs: tuple[Field, ...] | None = None

    def __enter__(self) -> GPUOperator:
        frame = caller()
        check_frame(frame)
        name = self._name or frame.f_code.co_name.strip("<>")
        slots = slots_of(self._types, self._default)
        threads = slots[0].kind
        self._recorder = Recorder(name, threads.field_shape, here(), slots, threads.names[: len(threads.field_shape)])
        self._recorder.root = frame
        self._recorder.hints = {v.node: k for k, v in frame.f_locals.items() if isinstance(v, Field)}
        self._recorder.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder = self._recorder
        recorder.__exit__()
        explain(error)
        if kind is None:
            kernel = finish(recorder, self._precision)
            kinds = [slot.kind for slot in recorder.outputs]
            self._outputs = results_of(kernel, identity(kernel), tuple(recorder.inputs), recorder.loc, kinds)

    @property
    def outputs(self) -> tuple[Field, ...]:
        """All outputs, a tuple of Fields; they exist after the `with`."""
        if self._outputs is None:
            raise SemanticError("the outputs of a GPUOperator exist after its `with` block")
        names = names_given(len(self._outputs))
        if names and not any(field.name for field in self._outputs):
            for field, name in zip(self._outputs, names, strict=True):
                field.name = name
        return self._outputs

    @property
    def output(self) -> Field:
        """The only output, a Field; it exists after the `with`."""
        if len(self.outputs) > 1:
            raise SemanticError(f"this GPUOperator has {len(self.outputs)} outputs; use `.outputs`")
        return self.outputs[0]
