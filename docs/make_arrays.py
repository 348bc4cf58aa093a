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
HEAD = """# NumPy functions of fields

A field is an array to NumPy, with the extents of the grid, then of the tensor (`f.shape`); axes count over all of them.
The functions below take fields, with the names, arguments and meaning of NumPy. Any other NumPy function raises, and
says what to write. They return lazy fields and are operators like others: a chain of them runs as few kernels, and a
transpose is read in tiles where the device gains by it. Nothing is a view: what is a view in NumPy, such as
`np.transpose`, `np.reshape` and `np.split`, is read in the kernel of its consumer and costs no pass; it is copied only
where it is itself a result.

```python
import numpy as np
import gpuop as gp

image = np.random.default_rng(3).random((480, 640), np.float32)
f, g = gp.ScalarField(image), gp.ScalarField(np.ones((480, 640), "f"))
framed = np.pad(np.roll(f, 1, axis=0) - f, 2, mode="reflect")
colours = np.dstack([f, g, f.T.reshape(480, 640)])                   # a field of vectors
planes = np.transpose(colours, (2, 0, 1))                            # a field of 3×480×640 scalars
ramp = gp.linspace(0, 1, 480)[:, np.newaxis] * gp.arange(640)        # grids broadcast
patched = gp.updated(f, np.s_[2:5, ::2], 0.5)                        # what `f[2:5, ::2] = 0.5` would mean
```

**Slices and reductions** of NumPy are operators: `sum`, `prod`, `mean`, `std`, `var`, `min`, `max`, `any`, `all`,
`argmin` and `argmax`, along axes or over all, with `keepdims=` and masks (`f.mean(axis=0, where=f > 0)`), and
`np.nansum`, `nanmean`, `nanmax` and their like. `gp.reduce(lambda a, b: _maxmag(a, b), f, 0.0, axis=1)` takes any
function of two values. `f.cumsum(axis)`, `cumprod` and `gp.scan` are scans; `np.sort`, `argsort`, `median` and
`percentile` work too. Where NumPy makes float64 of integers, fields make float32.

**Axes of the tensor.** An axis stays one of the grid or one of the tensor, wherever it goes. Grid axes come first, so
moving a tensor axis in front of a grid axis turns it into a grid axis. New axes belong to the grid, unless they come
after a tensor axis; `np.stack` and `np.dstack` make a tensor axis where the new one comes after all grid axes.
`f.reshape(shape)` keeps tensors where the last axes of the shape hold exactly a tensor; otherwise all axes belong to
the grid. `f.with_tensor_order(1)` makes the last axis the tensor's, `f.with_tensor_order(0)` gives all axes to the
grid.

**Names.** Named axes (`gp.ScalarField(batch, dims="img:chan:y:x")`) may be used in `axis=`, as in
`f.sum(axis=("y", "x"))` and `np.roll(f, 1, axis="x")`. Names stay with their axes; a reshaped field keeps the names
before and after what changes. Fields with different names do not combine; unnamed axes combine with any.
`f.named("n:chan:y:x")` renames.

**Broadcasting.** Grids broadcast as in NumPy: counted from the last axis, extents are equal, 1, or missing. Tensors are
equal, or one side has scalars. `np.broadcast_to` takes the axes of both.

**Dtypes.** Fields of several dtypes are joined in a common one, which is float32 where NumPy would turn integers into
float64. Numbers beside a field must fit its dtype; those of a "unorm8" field are 0 to 1. "bfloat16" beside integers is
bfloat16, beside float16 float32; NumPy has no such dtype, so its arrays are float32, which holds each value. Transforms
and decompositions of floats of 16 bits are float32.

**Truth values.** In arithmetic bools count as int32: `-f`, `f - g`, `f + g`, `np.sign`, `np.ptp` and `np.ediff1d` of
bool fields are int32, where NumPy raises or, for `+`, has `or`. `~f`, `f ^ g`, `f | g`, `f & g`, `np.diff` and extremes
are bools, as in NumPy.

**Intermediate precision.** For integers of 32 and 64 bits, sums and differences with floating numbers, remainders,
comparisons, derivatives and interpolation are computed in float64, as in NumPy, and rounded once, to float32; a device
without float64 computes them in float32. `.var`, `.std`, `.mean` of 64 bits, quantiles, `np.isclose`, `np.average`,
`np.trapezoid` and `np.unwrap` of integers need float64: such a device refuses them, except of `f.astype("float32")`.
All steps of float16 and bfloat16 are computed in float32.

**Shapes that depend on values.** Shapes are known before anything runs. `np.unique`, and `np.bincount` where the dtype
does not bound the counts, evaluate their field when they are called, and return fields of the resulting size. They
raise where there are no values yet: in pipelines, and for what graphs compute at each step. Up to 2¹⁵ values are sorted
by the host. `np.histogram(f, n, (0, n - 1))` counts the integers from 0 to n - 1 anywhere.

**Counts and sums.** Counts are exact. Weights are added in float64, as in NumPy, in chunks that depend on the shape and
the number of bins only: within each chunk in order, then the chunks. So bits are equal on all devices, and may differ
from NumPy in the last place. A value at an edge is in the same bin as in NumPy.

**Speed.** `benchmarks/numpy_functions.py` measures some of them beside NumPy, and on CUDA beside CuPy. On two cores of
a CPU, at 4096² and 2²⁴, the length of a gradient takes 0.09 of the time of NumPy, `np.select` 0.01, `np.allclose` 0.05,
`np.interp` 0.13, `np.convolve` by 33 values 0.12, `np.round` 0.32, `np.maximum.accumulate` 0.47.

`gp.zeros`, `gp.ones`, `gp.full`, `gp.arange`, `gp.linspace` and `gp.meshgrid` are computed where they are used, and
take no memory unless they are a result ([names of `gp`](api.md)).
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
