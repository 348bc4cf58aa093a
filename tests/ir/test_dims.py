"""Named dimensions by themselves, and what of a type kernels know."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpuop as gp
from gpuop.ir.layout import folded_strides, unfolded_strides


def test_sizes_strides_and_products():
    dims = gp.ScalarField(np.zeros((20, 3, 7, 11), "f"), dims="img:chan:y:x").dims
    assert (dims.img, dims.chan, dims.y, dims.x) == dims.shape == (20, 3, 7, 11)
    strides = np.zeros((20, 3, 7, 11), np.int8).strides  # bytes of one element each
    assert tuple(map(dims.stride, dims.names)) == strides
    assert dims.points == 20 * 3 * 7 * 11
    assert dims["x:chan"].shape == (11, 3)


def test_what_goes_with_what():
    images = gp.Dims("img:chan:y:x", chan=3)
    assert images.takes(gp.Dims(img=2, chan=3, y=4, x=5))
    assert images.takes(gp.FieldType((2, 3, 4, 5)).dims)
    assert not images.takes(gp.Dims(img=2, chan=4, y=4, x=5))
    assert not images.takes(gp.Dims(img=2, chan=3, x=4, y=5))
    assert not images.takes(gp.Dims(chan=3, y=4, x=5))
    colours = gp.Dims("y:x")(rgb=...)
    assert colours.takes(gp.FieldType((4, 5), 3).dims)
    assert not colours.takes(gp.FieldType((4, 5, 3)).dims)


def test_other_names_and_extents():
    colours = gp.Dims("y:x")(rgb=3)
    assert str(colours) == "y:x[rgb=3]"
    assert str(colours.replace(rgb="lab", y=480, x=...)) == "y=480:x[lab=3]"
    assert pickle.loads(pickle.dumps(colours)) == colours
    assert hash(gp.Dims(y=4, x=5)) == hash(gp.Dims("y:x", x=5, y=4))
    assert gp.Dims(y=4, x=5) != gp.Dims(x=5, y=4)


def test_types_of_other_names_are_equal():
    kind = gp.FieldType((2, 3, 4, 5), 3, "uint8", dims="img:chan:y:x:rgb")
    assert kind == gp.FieldType((2, 3, 4, 5), 3, "uint8")
    assert hash(kind) == hash(kind.replace(dims="a:b:c:d:e"))
    assert pickle.loads(pickle.dumps(kind)).names == kind.names
    assert kind.folded == gp.FieldType((6, 4, 5), 3, "uint8")
    assert kind != gp.FieldType((3, 2, 4, 5), 3, "uint8")
    assert kind.replace(tensor_shape=()).names == ("img", "chan", "y", "x")
    assert kind.replace(dtype="int8").names == kind.names


@pytest.mark.parametrize(
    ("view", "into"),
    [
        (np.s_[...], (6, 4, 5)),
        (np.s_[::2], (3, 4, 5)),
        (np.s_[:, :, ::2, ::-1], (6, 2, 5)),
        (np.s_[:, ::2], None),  # channels that lie further apart than images end
        (np.s_[:, 1:2, 1:], (2, 3, 5)),
        (np.s_[:1, ::2], (2, 4, 5)),
    ],
)
def test_strides_of_first_axes_that_are_one(view, into):
    array = np.arange(120.0).reshape(2, 3, 4, 5)[view]
    strides = tuple(n // 8 for n in array.strides)
    result = folded_strides(array.shape, strides, into or (array.shape[0] * array.shape[1], *array.shape[2:]))
    if into is None:
        assert result is None
        return
    same = np.lib.stride_tricks.as_strided(array, into, [n * 8 for n in result])
    assert np.array_equal(same, array.reshape(into))


def test_strides_of_one_axis_that_is_several():
    assert unfolded_strides((20, 5, 1), (2, 3, 4, 5)) == (60, 20, 5, 1)
    assert unfolded_strides((5, 1), (4, 5)) == (5, 1)
