"""Arrays that are no memory: the message names what to do instead."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp


def array_of(package: str, **more: object) -> object:
    """An array that looks like those of such a library."""
    body = {"__module__": f"{package}.core", "shape": (2,), "dtype": np.dtype("f"), "__hash__": None, **more}
    return type("Array", (), body)()


@gp.pipeline
def twice(image):
    return gp.ScalarField(image) * 2


COMPUTED = (
    "map the pipeline over its blocks with `gpuop.dask.map_blocks`, or `.compute\\(\\)` it where all of it has room"
)


@pytest.mark.parametrize(
    ("array", "remedy"),
    [
        (array_of("dask.array"), COMPUTED),
        (array_of("xarray"), "give the array that is in it, `.data`"),
        (array_of("zarr"), r"read as much as has room, as `array\[:100\]`"),
        (array_of("h5py"), r"read as much as has room, as `array\[:100\]`"),
    ],
    ids=["dask", "xarray", "zarr", "h5py"],
)
def test_arguments_of_pipelines(array: object, remedy: str) -> None:
    with pytest.raises(gp.SemanticError, match=f"argument `image` of pipeline `twice` is an Array: {remedy}"):
        twice(array)


def test_fields_are_not_computed_from_graphs() -> None:
    with pytest.raises(
        gp.SemanticError, match=f"an Array is to be computed yet, and may have no room in memory: {COMPUTED}"
    ):
        gp.ScalarField(array_of("dask.array", __dask_graph__=lambda self: {}))
    in_memory = array_of("xarray", __dask_graph__=lambda self: None, __array__=lambda self, *_, **__: np.ones(2, "f"))
    assert gp.ScalarField(in_memory).field_shape == (2,)
