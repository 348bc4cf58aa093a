"""Wrong histograms, counts and searches: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp

from .wrong import INTEGER, SCALAR, Wrongs

WRONGS = Wrongs()
ROW = INTEGER[0]
COMPLEX = gp.ScalarField(np.ones(3, "c8"))


@WRONGS.add("histogram: there is one bin or more, not 0")
def no_bins():
    np.histogram(SCALAR, 0)  # here


@WRONGS.add(
    "histogram: the number of bins of 'auto' depends on the values; `np.histogram_bin_edges(f.numpy(), 'auto')` gives edges"
)
def bins_by_name():
    np.histogram(SCALAR, "auto")  # here


@WRONGS.add("histogram: edges of bins are a row of two or more that increase")
def edges_that_fall():
    np.histogram(SCALAR, [0, 2, 1])  # here


@WRONGS.add("histogram: edges of bins are a row of two or more, not a 4×5 float32 field")
def edges_of_a_plane():
    np.histogram(ROW, SCALAR)  # here


@WRONGS.add("histogram: `bins=` is a number of bins, or a row of edges, not a float")
def half_a_bin():
    np.histogram(SCALAR, 5.0)  # here


@WRONGS.add("histogram: `bins=` is a number of bins, or a row of edges, not None")
def bins_of_nothing():
    np.histogram(SCALAR, None)  # here


@WRONGS.add("histogram: `range=` is two finite numbers that increase, not (1, 0)")
def a_range_that_falls():
    np.histogram(SCALAR, 4, (1, 0))  # here


@WRONGS.add("histogram: an end of `range=` is a number, or a field of one number, not a list")
def a_range_of_lists():
    np.histogram(SCALAR, 4, (0, [1]))  # here


@WRONGS.add("histogram: too many bins for the range: float32 has too few numbers between 1.0 and 1.0000001 for 9 bins")
def more_bins_than_floats():
    np.histogram(SCALAR, 9, (1.0, 1.0000001))  # here


@WRONGS.add("histogram does not take complex64 fields: complex numbers have no order")
def bins_of_complex_numbers():
    np.histogram(COMPLEX)  # here


@WRONGS.add("histogram: weights have the shape of the counted values, (5,), not (4, 5)")
def weights_of_another_shape():
    np.histogram(ROW, weights=SCALAR)  # here


@WRONGS.add("numpy.histogram takes Fields here, not an ndarray; wrap arrays, as in `gp.ScalarField(a)`")
def weights_of_an_array():
    np.histogram(ROW, weights=np.ones(5))  # here


@WRONGS.add("bincount counts the values of a row, not a 4×5 int32 field; `.ravel()` makes one")
def counts_of_a_plane():
    np.bincount(INTEGER)  # here


@WRONGS.add("bincount counts integers of up to int64, not float32")
def counts_of_floats():
    np.bincount(SCALAR[0])  # here


@WRONGS.add("bincount counts numbers of 0 or more, not -1")
def counts_of_negative_ones():
    np.bincount(ROW - 1)  # here


@WRONGS.add("bincount: `minlength=` is 0 or more, not -1")
def negative_length():
    np.bincount(ROW, minlength=-1)  # here


@WRONGS.add(
    "bincount: a value of 1099511627776 asks for 1099511627777 counts, which are more than 2147483647; `np.unique(f, "
)
def a_value_beyond_memory():
    np.bincount(gp.ScalarField(np.array([1, 2**40])))  # here


@WRONGS.add(
    "bincount: `minlength=1099511627776` asks for 1099511627776 counts, which are more than 2147483647; `np.unique(f, "
)
def a_length_beyond_memory():
    np.bincount(ROW, minlength=2**40)  # here


@WRONGS.add(
    'bincount: the length of the result depends on values, which are not known here; `np.bincount(f.astype("uint8"), '
)
def counts_in_a_pipeline():
    gp.pipeline(lambda a: np.bincount(gp.ScalarField(a)))(np.arange(5))  # here


@WRONGS.add(
    "unique: the length of the result depends on values, which are not known here; `np.sort(f)` has as many values as"
)
def distinct_values_of_frames():
    with gp.ComputeGraph():
        np.unique(gp.Sensor(ROW.type, lambda: None))  # here


@WRONGS.add("unique compares the single values of a Field: leave out `axis=`")
def distinct_rows():
    np.unique(SCALAR, axis=0)  # here


@WRONGS.add("searchsorted: a side is 'left' or 'right', not 'both'")
def no_side():
    ROW.searchsorted(3, "both")  # here


@WRONGS.add("searchsorted: the values in order are a row, not 4×5")
def a_plane_in_order():
    SCALAR.searchsorted(3)  # here


@WRONGS.add("digitize: bins increase, or decrease, from each to the next")
def bins_in_no_order():
    np.digitize(SCALAR, [0, 2, 1])  # here


@WRONGS.add("take_along_axis: indices are integers, not a 4×5 float32 field")
def along_floats():
    np.take_along_axis(SCALAR, SCALAR, 1)  # here


@WRONGS.add("take_along_axis: indices have the axes of a 4×5 float32 field, not those of a 5 int32 one")
def along_other_axes():
    np.take_along_axis(SCALAR, ROW, 1)  # here


@WRONGS.add("take_along_axis: index 5 is out of bounds for axis 1 with size 5")
def along_an_index_outside():
    np.take_along_axis(SCALAR, np.array([[5]]), 1)  # here


@WRONGS.add("take_along_axis: the extents of axis 0 differ, 4 and 3, and none is 1")
def along_other_extents():
    np.take_along_axis(SCALAR, np.zeros((3, 1), int), 1)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
