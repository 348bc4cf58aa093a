"""Makes docs/reference/numpy.md: NumPy's functions that take fields, from the table of `gpuop/ops/array_functions.py`.

python docs/make_arrays.py
"""

from __future__ import annotations

import inspect
from pathlib import Path

from gpuop.dsl.fields.numpy_hints import WAYS
from gpuop.lib.fft import numpy_names as fft_names
from gpuop.lib.linalg import numpy_names
from gpuop.ops.array_functions import OF_UFUNCS, TABLE, ArrayFunction
from gpuop.ops.elementwise import numpy_functions
from gpuop.ops.reduce import functions

PAGE = Path(__file__).parent / "reference" / "numpy.md"
HEAD = """# NumPy's functions of fields

A field is an array to NumPy: of the grid's extents, then of the tensor's (`f.shape`), and axes are counted over all of
them. These functions take fields, with NumPy's names, arguments and meaning; any other raises and says what to do. They give lazy
fields, which are operators like others: what is written as a chain of them runs as few kernels, and a transpose is read in tiles
where the device gains by it. Nothing is a view: what NumPy has as one, as `np.transpose`, `np.reshape` and `np.split`, is read in
the kernel of what follows, and costs no pass of its own; only where it is itself a result is it copied.

```python
f, g = gp.ScalarField(image), gp.ScalarField(np.ones((480, 640), "f"))
framed = np.pad(np.roll(f, 1, axis=0) - f, 2, mode="reflect")
colours = np.dstack([f, g, f.T.reshape(480, 640)])                   # a field of vectors
planes = np.transpose(colours, (2, 0, 1))                            # a field of 3×480×640 scalars
ramp = gp.linspace(0, 1, 480)[:, np.newaxis] * gp.arange(640)        # grids broadcast
patched = gp.updated(f, np.s_[2:5, ::2], 0.5)                        # what `f[2:5, ::2] = 0.5` would mean
```

**Which axes are the tensor's.** An axis stays what it is, the grid's or the tensor's, wherever it goes; but the grid's come first,
so a tensor's axis that comes to stand before one of the grid's is the grid's from then on. New axes are the grid's, unless they
stand behind one of the tensor's; `np.stack` and `np.dstack` make a tensor's axis where the new one stands behind all of the
grid's. `f.reshape(shape)` keeps tensors where the last axes of the shape hold just what a tensor holds, else all axes are the
grid's. `f.with_tensor_order(1)` takes the last axis as the tensor's, and `f.with_tensor_order(0)` gives all axes to the grid.

**Names.** Where axes have names (`gp.ScalarField(batch, dims="img:chan:y:x")`), `axis=` takes them, as in
`f.sum(axis=("y", "x"))` and `np.roll(f, 1, axis="x")`, and they stay with their axes; of a reshaped field those stay that stand
before and behind what changes. Fields whose axes have other names do not go together, axes without a name go with any;
`f.named("n:chan:y:x")` gives others.

**Broadcasting.** In host algebra grids broadcast as in NumPy: counted from the last axis, extents are equal, or 1, or missing.
Tensors are equal, or one side has scalars. `np.broadcast_to` takes the axes of both.

**Values.** Fields of several dtypes are joined in host algebra's common one, which is float32 where NumPy would turn integers into
float64. Numbers that stand beside a field's must fit its dtype; those of a "unorm8" field are 0 to 1.

**Truth values.** In arithmetic bools count as int32: `-f`, `f - g`, `f + g`, `np.sign`, `np.ptp` and `np.ediff1d` of fields of
bools are int32, where NumPy raises or, of `+`, has `or`. `~f`, `f ^ g`, `f | g`, `f & g`, `np.diff` and extremes are bools, as by
NumPy.

**Steps.** Of integers of 32 and 64 bits sums and differences with floating numbers, remainders, comparisons, derivatives and
interpolation are computed in float64, as by NumPy, and results are rounded once, to float32; a device without float64 computes
them in float32. `.var`, `.std`, `.mean` of 64 bits, quantiles, `np.isclose`, `np.average`, `np.trapezoid` and `np.unwrap` of
integers need float64: such a device refuses them, but of `f.astype("float32")`. Of float16 all steps are computed in float32.

**Sizes that follow from values.** Shapes are known before anything runs. `np.unique`, and `np.bincount` where its dtype does not
say how many counts there are, evaluate their field when they are called, and give fields of the size that was found; where there
are no values yet, in pipelines and of what graphs compute at each step, they raise. Up to 2¹⁵ values are sorted by the host.
`np.histogram(f, n, (0, n - 1))` counts the integers from 0 to n - 1 anywhere.

**Counts and sums.** Counts are exact. Weights are added in float64, as NumPy does, in chunks whose sizes follow from the shape
and the number of bins: one after another in each chunk, and then the sums of the chunks, so bits are equal on all devices; they
may differ from NumPy's in the last place. A value at an edge is in the bin that NumPy has it in.

**Speed.** `benchmarks/numpy_functions.py` measures some of them beside NumPy, and on CUDA beside CuPy. On two cores of a CPU, at
4096² and 2²⁴, the length of a gradient takes 0.09 of NumPy's time, `np.select` 0.01, `np.allclose` 0.05, `np.interp` 0.13,
`np.convolve` by 33 values 0.12, `np.round` 0.32, `np.maximum.accumulate` 0.47.

`gp.zeros`, `gp.ones`, `gp.full`, `gp.arange`, `gp.linspace` and `gp.meshgrid` are computed where they are used, and take no memory
unless they are a result. `gp.updated` names places as slices do. They are in [api.md](api.md).
"""
TAIL = """
## Elementwise

ufuncs, as calls without options: {ufuncs}. With two results: `divmod`, `modf`.

Methods of theirs: {methods}, and `.outer` of those that take two.

## Not of Fields

All other functions raise `gp.UnsupportedError`, whose sentence says what to write instead.

| function | instead |
|---|---|
{instead}"""
ALIASES = {"amin": "min", "amax": "max"}
DEFAULTS = {"ddof": 0, "initial": None, "keepdims": False, "where": True}  # of the options of reductions


def takes(name: str, function: ArrayFunction) -> str:
    """The arguments, as NumPy calls them; of reductions the field, the axis, and options by their names."""
    if function.group == "Reductions":
        options = functions.TABLE[ALIASES.get(name, name)].options
        return ", ".join(("a, axis=None, *", *(f"{o}={DEFAULTS[o]}" for o in options)))
    given = inspect.signature(function.call)
    kept = [p.replace(annotation=p.empty) for p in given.parameters.values()]
    return str(given.replace(parameters=kept, return_annotation=inspect.Signature.empty))[1:-1]


def page() -> str:
    lines = [HEAD]
    table = TABLE | numpy_names.TABLE | fft_names.TABLE
    for group in dict.fromkeys(row.group for row in table.values()):
        lines.append(f"\n## {group}\n\n| function | of fields |\n|---|---|\n")
        rows = ((name, row) for name, row in table.items() if row.group == group)
        lines += [f"| `np.{name}({takes(name, row)})` | {row.about} |\n" for name, row in rows]
    ufuncs = ", ".join(f"`{name}`" for name in sorted(numpy_functions.TABLE) if name != "clip")
    methods = ", ".join(f"`np.{name}`" for name in OF_UFUNCS if name.endswith(("reduce", "accumulate")))
    instead = "".join(f"| `np.{name}` | {way} |\n" for name, way in sorted(WAYS.items()))
    lines.append(TAIL.format(ufuncs=ufuncs, methods=methods, instead=instead))
    return "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
