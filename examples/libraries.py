"""Libraries among kernels, in the device's own memory: a filter by Fourier transforms, and a product of matrices.

On CUDA they are cuFFT and cuBLAS, through CuPy; on CPUs what NumPy has. NumPy's functions take the arrays of either, so the
program is the same, and no value goes to the host. Kernels before and behind a transform bring complex numbers to where it takes
them from, so that costs nothing of its own.

    python examples/libraries.py [--size 1024] [--device opencl:0]
"""

import argparse
import sys
import time

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *


def transform(values, spectrum):
    spectrum[...] = np.fft.fft2(values)


def transform_back(spectrum, values):
    values[...] = np.fft.ifft2(spectrum)


def product(a, b, result):
    np.matmul(a, b, out=result)


@gp.operator
def damped(spectrum, sigma):
    """A Gaussian of so many points, as a factor of each frequency."""
    frequencies = [
        _where(at <= n / 2, at, at - n) / _convert_float(n) for at, n in ((_row, _rows), (_column, _columns))
    ]
    squares = sum(f * f for f in frequencies)
    return _readTensor(spectrum) * _exp(-2 * np.pi**2 * sigma**2 * squares)


def blur(image, sigma):
    """A field that is blurred as if it went on around its edges; any radius takes the same time."""
    wave = image.astype("complex64")
    spectrum = gp.DeviceOperator(transform, wave, outputs=wave.type)
    return gp.DeviceOperator(transform_back, damped(spectrum, sigma), outputs=wave.type).real


def covariance(rows):
    """The covariance of each two rows of a field."""
    n, count = rows.field_shape
    centred = rows - rows.mean(axis=1)[:, np.newaxis]
    return gp.DeviceOperator(product, centred, centred.T, outputs=gp.FieldType((n, n))) / (count - 1)


def analyse(image, sigma, device=None):
    """A graph with the probes "blurred" and "covariance", of the rows of what is blurred."""
    with gp.ComputeGraph(device) as graph:
        blurred = blur(gp.ScalarField(image), sigma)
        graph.probe(blurred, "blurred")
        graph.probe(covariance(blurred), "covariance")
    return graph


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", type=int, default=1024, help="rows and columns (default: %(default)s)")
    common.with_device(parser)
    args = parser.parse_args(argv)
    image = np.random.default_rng(0).random((args.size, args.size), np.float32)
    start = time.perf_counter()
    graph = analyse(image, 3.0, common.device(args.device))
    blurred, found = graph.read("blurred"), graph.read("covariance")
    common.report(graph, time.perf_counter() - start, image.size)
    expected = np.cov(blurred.astype(np.float64))
    right = np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
    print(f"{args.size}×{args.size} by libraries on the device: {'right' if right else 'wrong'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
