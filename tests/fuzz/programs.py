"""Random programs: what they read and write, and on which threads; the body is made by `statements`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from hypothesis import strategies as st

from .functions import INEXACT
from .kinds import FLOATS, NUMPY, RANKED, join, numbers, split
from .leaves import Scope
from .statements import Statements

GRIDS = ((5, 13), (37,), (2, 3, 5), (1, 1), (1, 9), (7, 1), (3, 1, 4), (16,), (1,), (4, 8), ())
GROUPS = (
    (8,),
    (4, 4),
    (16,),
    (2, 8),
    (3, 5),
    (1, 1),
    (2, 2, 4),
    (1, 16),
    (16, 2),
    (64,),
    (5,),
    (2, 3, 1),
    (16, 16),
    (256,),
)
TENSORS = ((), (2,), (3,), (4,), (2, 2), (1,), (7,), (2, 3))
BIG = ((3,), (7,), (2, 3), (2, 2), (1,), (9,))
MODES = ("plain",) * 5 + ("threads", "element", "each")
BINS = {"add": "_atomic_add", "min": "_atomic_min", "max": "_atomic_max", "and": "_atomic_and", "or": "_atomic_or",
        "xor": "_atomic_xor", "sub": "_atomic_sub", "inc": "_atomic_inc", "dec": "_atomic_dec"}  # fmt: skip
MAPPINGS = ("mirrored", "rolled", "same", "moved")


@dataclass(frozen=True)
class Output:
    """An output.

    Attributes:
        how: "own" (written at the end), "sometimes" (in the body, with a default), "scatter", "atomic", "inexact".
        value: what is written at the end; a function's name and operands where it is inexact.
        extra: the mapping of a scatter, the operation of an atomic one.
    """

    how: str
    dtype: str
    tensor: tuple = ()
    default: object = None
    value: tuple | None = None
    extra: str = ""
    grid: tuple = ()


@dataclass(frozen=True)
class Program:
    """A kernel as plain data."""

    mode: str
    grid: tuple  # of the threads
    tensor: tuple = ()  # of the threads, in the modes "element" and "each"
    group: tuple | None = None
    fields: tuple = ()
    tables: tuple = ()
    variables: tuple = ()  # (name, type, initial value)
    uniform: tuple = ()
    arrays: tuple = ()  # (name, type, extents)
    locals: tuple = ()
    shared: tuple = ()
    bins: tuple = ()  # (name, type, extent, operation)
    body: tuple = ()
    outputs: tuple = field(default=())
    returned: bool = False


class Programs(Statements):
    """Makes whole programs."""

    def program(self, before: Program | None = None) -> Program:
        """A program; it reads the outputs of the one before, as p0, p1, …, and often has its threads."""
        mode, grid, group, tensor = self._threads()
        values = () if before is None else outputs_as_fields(before)
        if before is not None and self.chance(85):
            mode, grid, group, tensor = before.mode, values[0][3], before.group, before.tensor
        self.locally = {f[0] for f in values} if self.chance(80) else set()
        fields = tuple((*f[:4], f[3] == grid) for f in values)
        head = Program(mode, grid, tensor, group, (*fields, *fields, *self._fields(grid, tensor)))
        head = replace(head, **self._memory(head))
        return self._filled(head)

    def _threads(self) -> tuple:
        """A mode, a grid, a shape of groups and one of tensors."""
        mode = self.pick(("plain", "plain", "plain", "plain", *MODES) if self.exactly else MODES)
        grid, group = self.pick(GRIDS), None
        if mode == "threads" and not grid:
            mode = "plain"
        if mode in ("plain", "threads") and self.chance(60):
            group = self.pick([g for g in GROUPS if len(g) <= len(grid)] or [None])
        return mode, grid, group, self.pick(BIG) if mode in ("element", "each") else ()

    def _filled(self, head: Program) -> Program:
        self.by_element = element = bool(head.tensor)
        self.scope = Scope(head.fields, len(head.grid), element, tables=head.tables, grouped=head.group is not None)
        variables, uniform = self._variables(), self._uniform_variables(head)
        s = self.scope
        s.variables, s.uniform = list(variables), list(uniform)
        s.arrays, s.locals, s.shared, s.bins = list(head.arrays), head.locals, head.shared, head.bins
        outputs = self._outputs(head)
        self.outputs = tuple((n, o) for n, o in enumerate(outputs) if o.how in ("sometimes", "scatter", "atomic"))
        body = self.body(head.group is not None, 2)
        body = (*body, *(self.write(n, o) for n, o in self.outputs if not _writes(body, n)))
        done = tuple(self._at_end(o) for o in outputs)
        returned = all(o.how == "own" for o in done) and head.mode == "plain" and self.chance(50)
        if returned:
            done = tuple(self._as_returned(o) for o in done)
        return replace(head, variables=variables, uniform=uniform, body=body, outputs=done, returned=returned)

    # --- what is read and kept --------------------------------------------------------------------------------------

    def _fields(self, grid: tuple, tensor: tuple) -> tuple:
        results = []
        for n in range(1 + self.below(4)):
            near = self.chance(70)
            shape = grid if near else self.pick(GRIDS)
            dtype = self.pick((*NUMPY.values(), "float32", "uint8", "unorm8", "complex64", "complex128"))
            of = tensor if tensor and self.chance(50) else self.pick(TENSORS)
            if dtype.startswith("complex"):
                of = ()
            results.append((f"f{n}", _kernel_name(dtype), of, shape, shape == grid))
        return (*results, ("zero", "int", (), (), not grid))

    def _memory(self, head: Program) -> dict:
        tables = tuple(self._table(n) for n in range(self.below(3)))
        arrays = tuple((f"a{n}", self.kind(), self._extents()) for n in range(self.below(3)))
        if head.group is None:
            return {"tables": tables, "arrays": arrays}
        kinds = [self.kind() for _ in range(self.below(4))]
        bins = tuple(
            (f"b{n}", self.pick(("int", "uint")), 1 + self.below(5), self.pick(tuple(BINS)))
            for n in range(self.below(3))
        )
        return {
            "tables": tables, "arrays": arrays, "bins": bins,
            "locals": tuple((f"l{n}", kind, self.chance(40), self.chance(20)) for n, kind in enumerate(kinds)),
            "shared": tuple((f"s{n}", self.kind()) for n in range(self.below(3))),
        }  # fmt: skip

    def _extents(self) -> tuple:
        return tuple(1 + self.below(4) for _ in range(1 + self.below(3)))

    def _table(self, n: int) -> tuple:
        dtype, extents = self.pick(RANKED), self._extents()
        first = self.below(7)
        values = numbers(dtype)
        return (f"t{n}", dtype, extents, tuple(values[(first + k * 3) % len(values)] for k in range(prod(extents))))

    def _variables(self) -> tuple:
        kinds = [self.kind() for _ in range(2 + self.below(4))]
        return tuple((f"v{n}", kind, self.value(kind, 2)) for n, kind in enumerate(kinds))

    def _uniform_variables(self, head: Program) -> tuple:
        if head.group is None:
            return ()
        self.scope.uniform_only = True
        results = tuple((f"u{n}", kind, self.value(kind, 1)) for n, kind in enumerate(("int", self.pick(RANKED))))
        self.scope.uniform_only = False
        return results

    # --- outputs ------------------------------------------------------------------------------------------------------

    def _outputs(self, head: Program) -> list[Output]:
        hows = ("own", "own", "own", "sometimes", "scatter", "atomic", "inexact")
        if head.mode == "threads":
            hows = ("scatter", "scatter", "atomic")
        elif head.tensor:
            hows = ("own", "own", "sometimes")
        elif not head.grid:
            hows = ("own", "own", "sometimes", "inexact")
        if self.exactly:
            hows = (*(h for h in hows if h != "inexact"), *hows[:1] * 6)
        kinds = [hows[0] if n == 0 else self.pick(hows) for n in range(1 + self.below(4))]
        grid = self.pick([g for g in GRIDS if len(g) == len(head.grid)]) if head.mode == "threads" else head.grid
        return [self._output(head, how, grid) for how in kinds]

    def _output(self, head: Program, how: str, grid: tuple) -> Output:
        if how == "atomic":
            return Output(
                how, self.pick(("int32", "uint32")), extra=self.pick(tuple(BINS)), grid=grid, default=self.below(3)
            )
        if how == "inexact":
            return Output(how, NUMPY[self.pick(FLOATS)], grid=grid)
        dtype = self.pick((*NUMPY.values(), "unorm8"))
        tensor = head.tensor or self.pick(TENSORS[:5])
        default = self.below(2) if how != "own" else None
        return Output(how, dtype, tensor, default, None, self.pick(MAPPINGS), grid)

    def _at_end(self, output: Output) -> Output:
        if output.how == "inexact":
            dtype = _kernel_name(output.dtype)
            name = self.pick(sorted(INEXACT))
            second = ("int", dtype)[INEXACT[name].name not in ("_pown", "_rootn")]
            args = [self.value(dtype if n == 0 else second, 2) for n in range(INEXACT[name].arity)]
            return replace(output, value=("call", dtype, name, *args))
        if output.how == "own":
            return replace(output, value=self.written(output))
        return output

    def _as_returned(self, output: Output) -> Output:
        """The type of what is returned."""
        dtype, lanes = split(output.value[1])
        return replace(output, dtype=NUMPY[dtype], tensor=(lanes,) if lanes > 1 else ())


def _kernel_name(dtype: str) -> str:
    names = {v: k for k, v in NUMPY.items()}
    return names.get(dtype, dtype)


def _writes(body: tuple, n: int) -> bool:
    """Return whether statements write an output."""
    if body[:2] in (("write", n), ("write element", n), ("atomic", n)):
        return True
    return any(isinstance(part, tuple) and _writes(part, n) for part in body)


@st.composite
def programs(draw) -> Program:
    return Programs(draw).program()


@st.composite
def pairs(draw) -> tuple[Program, Program]:
    """Two programs; the second one reads what the first one writes, as p0, p1, …."""
    first = Programs(draw, exactly=True).program()
    return first, Programs(draw, exactly=True).program(first)


def outputs_as_fields(program: Program) -> tuple:
    return tuple((f"p{n}", _kernel_name(o.dtype), o.tensor, o.grid) for n, o in enumerate(program.outputs))


def lanes_of(output: Output) -> int:
    return prod(output.tensor)


def value_type(output: Output) -> str:
    """The type that writes to an output convert to."""
    dtype = "float" if output.dtype == "unorm8" else _kernel_name(output.dtype)
    return join(dtype, lanes_of(output))
