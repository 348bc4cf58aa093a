"""NumPy's functions on fields, but for ufuncs: those of `gpuop/ops/array_functions.py`."""

from __future__ import annotations

from .row import Row


def of(name: str, arguments: str, torch: str = "", **more: str | bool) -> Row:
    """PyTorch's call is the arguments of its function of another name, or an expression."""
    other = torch if "(" in torch or not torch else f"torch.{torch}({arguments})"
    return Row("numpy", name, f"np.{name}({arguments})", torch=other, **more)  # type: ignore[arg-type]


CHOICES = [
    of("where", "mask, image, other", "where"),
    of("clip", "image, 0.2, 0.8", "clip"),
    of("real", "waves"),
    of("imag", "waves"),
    of("angle", "waves", "angle"),
    of("astype", "signed, np.int32", "signed.int()"),
    of("select", "[image < 0.3, image < 0.6], [image * 2, other], 0.5"),
    of("choose", "more % 2, [image, other], mode='clip'"),
    of("piecewise", "image, [image < 0.5], [lambda x: x * 2, lambda x: x - 1]"),
    of("round", "signed, 2", "torch.round(signed, decimals=2)"),
    of("around", "signed, 2"),
    of("fix", "signed", "fix"),
    of("nan_to_num", "holes", "nan_to_num"),
    of("sinc", "signed", "sinc"),
]
TESTS = [
    of("isclose", "image, other", "isclose"),
    of("allclose", "image, image", "allclose"),
    of("array_equal", "image, image", "torch.equal(image, image)"),
    of("array_equiv", "image, image"),
    of("isposinf", "signed", "isposinf"),
    of("isneginf", "signed", "isneginf"),
    of("iscomplex", "waves"),
    of("isreal", "waves", "isreal"),
    of("isin", "numbers, picks[:100]", "isin"),
]
ALONG_ROWS = "sum prod mean std var min max argmin argmax amin amax"
REDUCTIONS = [
    *(of(name, "image, axis=1") for name in ALONG_ROWS.split()),
    *(of(name, "mask, axis=1", name) for name in ("any", "all", "count_nonzero")),
    *(
        of(f"nan{name}", "holes, axis=1")
        for name in ("sum", "prod", "mean", "std", "var", "min", "max", "argmin", "argmax")
    ),
]
SCANS = [
    of("cumsum", "image, axis=1", "cumsum"),
    of("cumprod", "other, axis=1", "cumprod"),
    of("nancumsum", "holes, axis=1"),
    of("nancumprod", "holes, axis=1"),
    of("cumulative_sum", "image, axis=1"),
    of("cumulative_prod", "other, axis=1"),
]
ORDER = [
    of("sort", "row", "torch.sort(row)"),
    of("argsort", "row, kind='stable'", "torch.argsort(row, stable=True)"),
    of("median", "image, axis=1", "torch.median(image, 1)"),
    of("nanmedian", "holes, axis=1", "torch.nanmedian(holes, 1)"),
    of("quantile", "image, 0.3, axis=1", "torch.quantile(image, 0.3, 1)"),
    of("percentile", "image, 30, axis=1"),
    of("nanquantile", "holes, 0.3, axis=1", "torch.nanquantile(holes, 0.3, 1)"),
    of("nanpercentile", "holes, 30, axis=1"),
    of("searchsorted", "bins, row", "searchsorted"),
    of("digitize", "row, bins", "torch.bucketize(row, bins)"),
]
COUNTS = [
    of("histogram", "row, 256, (0, 1)", "torch.histc(row, 256, 0, 1)", compared="r[0]"),
    of("bincount", "numbers", "bincount", eager=True),
    of("unique", "numbers", "unique", eager=True),
    of("unique_values", "numbers", compared="np.sort(r)", eager=True),
    of("unique_counts", "numbers", eager=True),
    of("unique_inverse", "numbers", eager=True),
    of("unique_all", "numbers", eager=True),
    of("nonzero", "mask", "torch.nonzero(mask, as_tuple=True)", eager=True),
    of("flatnonzero", "mask", eager=True),
    of("argwhere", "mask", "argwhere", eager=True),
]
PRODUCTS = [
    of("inner", "square, other_square", "torch.matmul(square, other_square.T)"),
    of("vdot", "row, other_row", "vdot"),
    of("outer", "row[:size], other_row[:size]", "outer"),
    of("tensordot", "square, other_square, 1", "tensordot"),
    of("convolve", "row, taps"),
    of("correlate", "row, taps"),
]
SLOPES = [
    of("gradient", "image", "gradient"),
    of("ediff1d", "row"),
    of("unwrap", "signed * 4"),
    of("trapezoid", "image, axis=1", "torch.trapezoid(image, dim=1)"),
    of("average", "image, axis=1, weights=other"),
    of("ptp", "image, axis=1"),
    of("interp", "row, bins, values"),
]
LAYOUTS = [
    of("transpose", "image", "image.T.contiguous()"),
    of("swapaxes", "image, 0, 1"),
    of("moveaxis", "image, 0, 1"),
    of("flip", "image", "torch.flip(image, (0, 1))"),
    of("fliplr", "image", "fliplr"),
    of("flipud", "image", "flipud"),
    of("rot90", "image", "rot90"),
    of("roll", "image, 7, 1", "roll"),
    of("matrix_transpose", "image"),
    of("rollaxis", "image, 1"),
    of("shape", "image", eager=True),
    of("ndim", "image", eager=True),
    of("size", "image", eager=True),
    of("reshape", "image, -1"),
    of("ravel", "image"),
    of("expand_dims", "image, 0"),
    of("squeeze", "image"),
    of("broadcast_to", "image, (2, *shape)"),
    of("atleast_1d", "image"),
    of("atleast_2d", "image"),
    of("atleast_3d", "image"),
    of("broadcast_arrays", "image, other[:1]"),
]
JOINING = [
    of("concatenate", "[image, other], 1", "concatenate"),
    of("stack", "[image, other]", "stack"),
    of("vstack", "[image, other]", "vstack"),
    of("hstack", "[image, other]", "hstack"),
    of("dstack", "[image, other]", "dstack"),
    of("column_stack", "[image, other]", "column_stack"),
    of("append", "image, other, 1"),
    of("split", "image, 2"),
    of("array_split", "image, 3"),
    of("hsplit", "image, 2"),
    of("vsplit", "image, 2"),
    of("dsplit", "np.stack([image, other], -1), 2"),
    of("unstack", "image[:4]"),
]
POINTS = [
    of("delete", "image, [3, 7], 1"),
    of("tril", "image", "tril"),
    of("triu", "image", "triu"),
    of("pad", "image, 5, mode='symmetric'"),
    of("take", "image, picks, 1"),
    of("take_along_axis", "image, order, 1", "torch.take_along_dim(image, order, 1)"),
    of("repeat", "image, 2, 1", "torch.repeat_interleave(image, 2, 1)"),
    of("tile", "image, (1, 2)", "tile"),
    of("diff", "image", "diff"),
]
MAKING = [
    of("copy", "image", "image.clone()"),
    of("empty_like", "image", reference="np.zeros_like(image)"),  # it gives zeros
    of("zeros_like", "image", "zeros_like"),
    of("ones_like", "image", "ones_like"),
    of("full_like", "image, 2", "full_like"),
    of("meshgrid", "row[:size], other_row[:size]"),
    of("result_type", "image, whole", eager=True, compared=""),
]
ROWS = [
    *(*CHOICES, *TESTS, *REDUCTIONS, *SCANS, *ORDER, *COUNTS),
    *(*PRODUCTS, *SLOPES, *LAYOUTS, *JOINING, *POINTS, *MAKING),
]
