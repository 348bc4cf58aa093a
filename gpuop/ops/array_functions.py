"""The table of NumPy functions that take fields, except elementwise ones; docs/reference/numpy.md lists its rows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gpuop.base.errors import UnsupportedError
from gpuop.base.misspelt import with_near_name
from gpuop.base.records import dataclass
from gpuop.dsl.fields import services
from gpuop.ops.create import computed_fields, evenly_spaced
from gpuop.ops.elementwise import algebra, ufunc_methods
from gpuop.ops.layout import join, layouts, padding, reorder, shape_functions
from gpuop.ops.reduce import calculus, counting, functions, row_products
from gpuop.ops.scan import scans
from gpuop.ops.select import choices, take
from gpuop.ops.sort import search, sets, sorts

Function = Callable[..., Any]


@dataclass(frozen=True)
class ArrayFunction:
    """A NumPy function.

    Attributes:
        call: its implementation for fields, with the parameter names of NumPy.
        about: differences from NumPy, for users.
        group: its section in docs/reference/numpy.md.
    """

    call: Function
    group: str
    about: str = ""

    def __call__(self, name: str, args: Any, kwargs: Any) -> Any:
        try:
            _signature(self.call).bind(*args, **kwargs)
        except TypeError as wrong:
            signature = _signature(self.call)
            reason = with_near_name(wrong, signature)
            raise UnsupportedError(
                f"numpy.{name} of Fields takes {', '.join(signature.parameters)}: {reason}"
            ) from None
        return self.call(*args, **kwargs)


_signature = functools.cache(inspect.signature)


def _reduction(name: str) -> ArrayFunction:
    about = functions.TABLE[name].about
    return ArrayFunction(functions.FUNCTIONS[name], "Reductions", about or f"as `.{name}`")


SCANS, SORTS, COUNTS = "Scans", "Order", "Counts"
EVALUATED = "evaluated when it is called, as its length follows from the values"
METHODS = "`q` is a number or a list; selected values keep their dtype, interpolated ones are floats"
ALONG = "a Field's indices that are out of bounds are those of the ends"
ZERO_D = "a 0D field, which `if` and `bool` evaluate"
FLAT = "all axes of the result are the grid's; integers wrap around, as NumPy's"
HISTOGRAM = (
    "edges are a Field too; `range=` takes fields of one number; without it, values in memory that are not finite, or too close "
    "to one another for so many bins, raise the error of NumPy; of computed values, those that are not finite count nothing, which "
    "checked execution reports, and those too close give equal edges; the range may exceed the greatest number of the dtype, where "
    "NumPy raises"
)
ORDER, SHAPES, JOINING = "Axes and order", "Shapes", "Joining and splitting"
POINTS, MAKING, CHOICES = "Points", "New fields", "Choices and parts"
TESTS, PRODUCTS, SLOPES = "Tests", "Products", "Derivatives, means and interpolation"
NEW_AXIS = "a new axis is the grid's, unless it stands behind one of the tensor's"
TABLE = {
    "where": ArrayFunction(algebra.where, CHOICES, "with three arguments"),
    "clip": ArrayFunction(choices.clip, CHOICES, "None leaves a side open"),
    "real": ArrayFunction(services.algebra["real"], CHOICES),
    "imag": ArrayFunction(services.algebra["imag"], CHOICES),
    "angle": ArrayFunction(algebra.angle, CHOICES),
    "astype": ArrayFunction(algebra.astype, CHOICES, "as kernels write: integers truncate and saturate"),
    "select": ArrayFunction(choices.select, CHOICES, "the first choice whose condition holds; all are computed"),
    "choose": ArrayFunction(choices.choose, CHOICES, '`mode="clip"` or `"wrap"`'),
    "piecewise": ArrayFunction(choices.piecewise, CHOICES, "functions are called with the whole field"),
    "round": ArrayFunction(choices.around, CHOICES, "integers stay integers"),
    "around": ArrayFunction(choices.around, CHOICES, "as `np.round`"),
    "fix": ArrayFunction(choices.fix, CHOICES),
    "nan_to_num": ArrayFunction(choices.nan_to_num, CHOICES, "not of complex numbers"),
    "sinc": ArrayFunction(choices.sinc, CHOICES),
    "isclose": ArrayFunction(choices.isclose, TESTS, "in float64 of integers; either is a Field, an array or a number"),
    "allclose": ArrayFunction(choices.allclose, TESTS, ZERO_D),
    "array_equal": ArrayFunction(choices.array_equal, TESTS, ZERO_D),
    "array_equiv": ArrayFunction(choices.array_equiv, TESTS, ZERO_D),
    "isposinf": ArrayFunction(choices.isposinf, TESTS),
    "isneginf": ArrayFunction(choices.isneginf, TESTS),
    "iscomplex": ArrayFunction(choices.iscomplex, TESTS),
    "isreal": ArrayFunction(choices.isreal, TESTS),
    "isin": ArrayFunction(sets.isin, TESTS, "by a search among the values in order"),
    **{name: _reduction(name) for name in functions.FUNCTIONS},
    "cumsum": ArrayFunction(scans.cumsum, SCANS, "of dtypes as `.sum`; by functions: `gp.scan`"),
    "cumprod": ArrayFunction(scans.cumprod, SCANS, "of dtypes as `.prod`"),
    "nancumsum": ArrayFunction(scans.nancumsum, SCANS),
    "nancumprod": ArrayFunction(scans.nancumprod, SCANS),
    "sort": ArrayFunction(sorts.sort, SORTS, "stable; NaN comes last; complex numbers by real, then imaginary parts"),
    "argsort": ArrayFunction(sorts.argsort, SORTS, "stable, whatever `kind`; int64"),
    "median": ArrayFunction(sorts.median, SORTS, "float32 of integers"),
    "nanmedian": ArrayFunction(sorts.nanmedian, SORTS, "of what is not NaN; NaN where all is"),
    "quantile": ArrayFunction(sorts.quantile, SORTS, METHODS),
    "percentile": ArrayFunction(sorts.percentile, SORTS, METHODS),
    "nanquantile": ArrayFunction(sorts.nanquantile, SORTS, "of what is not NaN; NaN where all is"),
    "nanpercentile": ArrayFunction(sorts.nanpercentile, SORTS, "of what is not NaN; NaN where all is"),
    "searchsorted": ArrayFunction(search.searchsorted, SORTS, "int64; either is a Field, an array or a list"),
    "digitize": ArrayFunction(search.digitize, SORTS, "int64; bins that are a Field increase"),
    "histogram": ArrayFunction(counting.histogram, COUNTS, HISTOGRAM),
    "bincount": ArrayFunction(counting.bincount, COUNTS, f"{EVALUATED}, unless `minlength=` holds all values of an unsigned dtype"),
    "unique": ArrayFunction(sets.unique, COUNTS, f"{EVALUATED}; `axis` is None"),
    "unique_values": ArrayFunction(sets.unique_values, COUNTS, f"{EVALUATED}; in order"),
    "unique_counts": ArrayFunction(sets.unique_counts, COUNTS, EVALUATED),
    "unique_inverse": ArrayFunction(sets.unique_inverse, COUNTS, EVALUATED),
    "unique_all": ArrayFunction(sets.unique_all, COUNTS, EVALUATED),
    "nonzero": ArrayFunction(sets.nonzero, COUNTS, EVALUATED),
    "flatnonzero": ArrayFunction(sets.flatnonzero, COUNTS, EVALUATED),
    "argwhere": ArrayFunction(sets.argwhere, COUNTS, f"a field of vectors; {EVALUATED}"),
    "cumulative_sum": ArrayFunction(calculus.cumulative_sum, SCANS),
    "cumulative_prod": ArrayFunction(calculus.cumulative_prod, SCANS),
    "inner": ArrayFunction(row_products.inner, PRODUCTS, FLAT),
    "vdot": ArrayFunction(row_products.vdot, PRODUCTS),
    "outer": ArrayFunction(row_products.outer, PRODUCTS),
    "tensordot": ArrayFunction(row_products.tensordot, PRODUCTS, FLAT),
    "convolve": ArrayFunction(row_products.convolve, PRODUCTS, "of rows, 16-bit floats in float32; grids: `gp.ndimage.convolve`"),
    "correlate": ArrayFunction(row_products.correlate, PRODUCTS, "as `np.convolve`"),
    "gradient": ArrayFunction(calculus.gradient, SLOPES, "float32 of integers; distances are numbers, not Fields"),
    "ediff1d": ArrayFunction(calculus.ediff1d, SLOPES),
    "unwrap": ArrayFunction(calculus.unwrap, SLOPES),
    "trapezoid": ArrayFunction(calculus.trapezoid, SLOPES),
    "average": ArrayFunction(calculus.average, SLOPES),
    "ptp": ArrayFunction(calculus.ptp, SLOPES),
    "interp": ArrayFunction(calculus.interp, SLOPES, "in the fields' floating dtype, beside which arrays are numbers"),
    "transpose": ArrayFunction(layouts.transpose, ORDER, "a tensor's axis before one of the grid's is the grid's; also `f.T`"),
    "swapaxes": ArrayFunction(layouts.swapaxes, ORDER),
    "moveaxis": ArrayFunction(layouts.moveaxis, ORDER),
    "flip": ArrayFunction(reorder.flip, ORDER),
    "fliplr": ArrayFunction(reorder.fliplr, ORDER),
    "flipud": ArrayFunction(reorder.flipud, ORDER),
    "rot90": ArrayFunction(reorder.rot90, ORDER),
    "roll": ArrayFunction(reorder.roll, ORDER),
    "matrix_transpose": ArrayFunction(shape_functions.matrix_transpose, ORDER, "also `f.mT`"),
    "rollaxis": ArrayFunction(shape_functions.rollaxis, ORDER),
    "shape": ArrayFunction(shape_functions.shape, SHAPES, "also `f.shape`"),
    "ndim": ArrayFunction(shape_functions.ndim, SHAPES, "also `f.ndim`"),
    "size": ArrayFunction(shape_functions.size, SHAPES, "also `f.size`"),
    "reshape": ArrayFunction(layouts.reshape, SHAPES, "tensors stay where the last axes of the shape are just theirs"),
    "ravel": ArrayFunction(layouts.ravel, SHAPES, "in row-major order"),
    "expand_dims": ArrayFunction(layouts.expand_dims, SHAPES, NEW_AXIS + "; also `f[:, np.newaxis]`"),
    "squeeze": ArrayFunction(layouts.squeeze, SHAPES),
    "broadcast_to": ArrayFunction(layouts.broadcast_to, SHAPES),
    "atleast_1d": ArrayFunction(shape_functions.atleast_1d, SHAPES),
    "atleast_2d": ArrayFunction(shape_functions.atleast_2d, SHAPES),
    "atleast_3d": ArrayFunction(shape_functions.atleast_3d, SHAPES, "scalars on planes become vectors"),
    "broadcast_arrays": ArrayFunction(shape_functions.broadcast_arrays, SHAPES),
    "concatenate": ArrayFunction(join.concatenate, JOINING, "of dtypes host algebra's common one"),
    "stack": ArrayFunction(join.stack, JOINING, "behind the grid's axes the new one is the tensor's: scalars become vectors"),
    "vstack": ArrayFunction(join.vstack, JOINING),
    "hstack": ArrayFunction(join.hstack, JOINING),
    "dstack": ArrayFunction(join.dstack, JOINING, "scalars on planes become vectors"),
    "split": ArrayFunction(join.split, JOINING),
    "array_split": ArrayFunction(join.array_split, JOINING),
    "column_stack": ArrayFunction(shape_functions.column_stack, JOINING),
    "append": ArrayFunction(shape_functions.append, JOINING),
    "hsplit": ArrayFunction(shape_functions.hsplit, JOINING),
    "vsplit": ArrayFunction(shape_functions.vsplit, JOINING),
    "dsplit": ArrayFunction(shape_functions.dsplit, JOINING),
    "unstack": ArrayFunction(shape_functions.unstack, JOINING),
    "delete": ArrayFunction(shape_functions.delete, POINTS, "what goes is known when it is called"),
    "tril": ArrayFunction(shape_functions.tril, POINTS),
    "triu": ArrayFunction(shape_functions.triu, POINTS),
    "pad": ArrayFunction(padding.pad, POINTS, "modes constant, edge, reflect, symmetric and wrap"),
    "take": ArrayFunction(reorder.take, POINTS, 'a Field\'s indices take `mode="clip"` or `"wrap"`'),
    "take_along_axis": ArrayFunction(take.take_along_axis, POINTS, ALONG),
    "repeat": ArrayFunction(reorder.repeat, POINTS),
    "tile": ArrayFunction(reorder.tile, POINTS),
    "diff": ArrayFunction(join.diff, POINTS),
    "copy": ArrayFunction(shape_functions.copy, MAKING, "the field itself: its values do not change"),
    "empty_like": ArrayFunction(computed_fields.empty_like, MAKING, "zeros"),
    "zeros_like": ArrayFunction(computed_fields.zeros_like, MAKING),
    "ones_like": ArrayFunction(computed_fields.ones_like, MAKING),
    "full_like": ArrayFunction(computed_fields.full_like, MAKING),
    "meshgrid": ArrayFunction(evenly_spaced.meshgrid, MAKING, "of fields of one dimension; also `gp.meshgrid`"),
    "result_type": ArrayFunction(shape_functions.result_type, MAKING, "host algebra's common dtype"),
}  # fmt: skip
TABLE |= {"amin": TABLE["min"], "amax": TABLE["max"]}
OF_UFUNCS = {
    name: ArrayFunction(call, "Elementwise") for name, call in ufunc_methods.FUNCTIONS.items()
}  # for `__array_ufunc__`
services.array_functions.update(TABLE | OF_UFUNCS)
