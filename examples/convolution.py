"""A layer of a convolutional network on arrays of four dimensions, by the names of these: a convolution with strides, a bias and
ReLU, then the maxima of windows.

Images are `img:chan:y:x`, filters `oc:chan:ky:kx`; a stride and a window are dimensions without memory. The operators say what they
take, so what does not fit is told at the line of the call, all of it at once; a kernel reads at named places, of which those that
it does not name are its thread's own.

    python examples/convolution.py [--size 64] [--device opencl:0]
"""

import argparse
import sys
import time

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *

IMAGES, FILTERS, STEPS = gp.Dims("img:chan:y:x"), gp.Dims("oc:chan:ky:kx"), gp.Dims("y:x")


def count(extent, window, stride):
    """The number of windows that lie inside."""
    return (extent - window) // stride + 1


def filtered(images, filters, bias, stride):
    """The dimensions of a convolution's result."""
    given, window = images.dims, filters.dims
    return given.replace(chan=window.oc, y=count(given.y, window.ky, stride.y), x=count(given.x, window.kx, stride.x))


@gp.operator(inputs={"images": IMAGES, "filters": FILTERS, "bias": gp.Dims("oc"), "stride": STEPS}, outputs=filtered)
def convolution(images, filters, bias, stride):
    """The filters' products with what lies under them, one result for each filter."""
    oc, top, left = _dim("chan"), _dim("y") * stride.y, _dim("x") * stride.x
    total = _var(_readTensor(bias, oc=oc))
    with _for(images.dims.chan) as chan:
        for ky in range(filters.dims.ky):
            for kx in range(filters.dims.kx):
                value = _readTensor(images, chan=chan, y=top + ky, x=left + kx)
                total += value * _readTensor(filters, oc=oc, chan=chan, ky=ky, kx=kx)
    return total


@gp.operator(
    inputs={"images": IMAGES, "window": STEPS},
    outputs=lambda images, window: images.dims.replace(y=images.dims.y // window.y, x=images.dims.x // window.x),
)
def largest(images, window):
    """The largest value of each window, side by side."""
    top, left = _dim("y") * window.y, _dim("x") * window.x
    found = _readTensor(images, y=top, x=left)
    for y, x in np.ndindex(window.shape):
        found = _max(found, _readTensor(images, y=top + y, x=left + x))
    return found


@gp.pipeline
def layer(images, filters, bias, stride=1, window=2):
    """Arrays of four dimensions in and out; the sum, ReLU and whatever else is computed at each point fuse."""
    named = gp.ScalarField(images, dims=IMAGES)
    sums = convolution(named, gp.ScalarField(filters), gp.ScalarField(bias), gp.Dims(y=stride, x=stride))
    return largest(np.maximum(sums, 0), gp.Dims(y=window, x=window)), sums.mean(axis=("img", "y", "x"))


def in_numpy(images, filters, bias, stride=1, window=2):
    """The same by views of windows."""
    under = np.lib.stride_tricks.sliding_window_view(images, filters.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    sums = np.einsum("ncyxij,ocij->noyx", under, filters, optimize=True) + bias[:, None, None]
    rows, columns = (n // window for n in sums.shape[2:])
    relu = np.maximum(sums, 0)[:, :, : rows * window, : columns * window]
    return relu.reshape(*relu.shape[:2], rows, window, columns, window).max(axis=(3, 5)), sums.mean(axis=(0, 2, 3))


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", type=int, default=64, help="rows and columns of the images (default: %(default)s)")
    common.with_device(parser)
    args = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    images = rng.integers(-8, 8, (4, 3, args.size, args.size)).astype(np.float32)  # whole numbers have exact sums
    filters, bias = rng.integers(-4, 4, (16, 3, 5, 5)).astype(np.float32), np.arange(16, dtype=np.float32)
    with gp.use_device(common.device(args.device)):
        layer(images, filters, bias)  # compiles
        start = time.perf_counter()
        maxima, means = layer(images, filters, bias)
        seconds = time.perf_counter() - start
    expected, expected_means = in_numpy(images, filters, bias)
    right = np.array_equal(maxima, expected) and np.allclose(means, expected_means, rtol=1e-5, atol=1e-4)
    shapes = " to ".join("×".join(map(str, a.shape)) for a in (images, maxima))
    print(f"{shapes} in {seconds * 1e3:.1f} ms: {'right' if right else 'wrong'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
