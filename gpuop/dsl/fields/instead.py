"""What to write instead of NumPy's names that fields do not have."""

from __future__ import annotations

# NumPy's functions that take fields
FUNCTIONS = {
    "where", "clip", "angle", "real", "imag", "sum", "min", "max", "amin", "amax", "mean", "argmin", "argmax", "any", "all",
}  # fmt: skip
_TYPE = "its grid is in `.field_shape`, its tensor in `.tensor_shape`"
_TRANSPOSED = (
    "an operator with `outputs=lambda f: f.type.replace(field_shape=f.field_shape[::-1])` that returns "
    "`_readTensor(f, _column, _row)` transposes"
)
_DEVIATION = "`((f - f.mean()) ** 2).mean()` is the variance, `np.sqrt` of it the deviation"
_TURNED = "slices with negative steps turn axes round, as `f[::-1]`"
WAYS = {  # by NumPy's name of the function
    "transpose": _TRANSPOSED, "std": _DEVIATION, "var": _DEVIATION,
    "flip": _TURNED, "fliplr": _TURNED, "flipud": _TURNED,
    "roll": "`_readTensor(f, _row, _column - n, border=\"wrap\")` in an operator shifts",
    "pad": "reads take a `border=`, and an operator with a larger `outputs=` that reads at `_row - n` pads",
    "round": "`np.rint(f)` rounds", "around": "`np.rint(f)` rounds",
    "concatenate": "an operator with a larger `outputs=` puts fields together, with `_where` of its position",
    "stack": "an operator that returns `_vector(…)` makes vectors of scalar fields",
    "dot": "`(a * b).sum()` is the inner product; kernels have `_dot` of vectors",
    "matmul": "`(a * b).sum()` is the inner product; an operator that adds `_readTensor(a, _row, k) * _readTensor(b, k, _column)` "
    "in a `with _for(…) as k:` multiplies matrices",
    "reshape": "a field keeps its shape; an operator with `outputs=` reads where it wants",
}  # fmt: skip
ATTRIBUTES = {
    "shape": _TYPE, "ndim": _TYPE, "size": "`.type.array_shape.points` counts its values",
    "next": "`.next` is only set, inside a graph's `with`; `graph.read(f)` gives what a field is after a step",
    "T": _TRANSPOSED, "copy": "fields do not change: `f` itself serves as a copy", "item": "`float(f)` is the number of a 0D field",
    "clip": "`np.clip(f, low, high)` clips", "dot": WAYS["dot"],
    **{name: WAYS[name] for name in ("transpose", "std", "var", "round", "reshape")},
}  # fmt: skip
