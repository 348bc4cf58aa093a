"""Deconvolution with a learned point spread function: the camera shakes, and neither its blur nor the sharp picture is known.

A picture of a known chart teaches the 9×9 weights of the blur; they are the softmax of what is learned, so that they are
positive and sum to 1. Then another picture of that camera is made sharp: the misfit of its blur, and the total variation,
are one kernel with its gradient by each pixel. SciPy's L-BFGS takes the steps of both.

    python examples/deconvolution.py [PICTURE] [--noise 0.005] [--smooth 0.0005] [--output out/deconvolution.png]
"""

import sys
import time

import common
import numpy as np
from scipy.optimize import minimize

import gpuop as gp
from gpuop.dsl import *

SIZE = 9
ITERATIONS = 60  # of the picture; the blur takes three times as many


@gp.operator
def blurred(image, psf):
    """The correlation with weights that are a field."""
    first_row, first_column = _row - SIZE // 2, _column - SIZE // 2
    places = [(r, c) for r in range(SIZE) for c in range(SIZE)]
    return sum(
        _readTensor(psf, r, c) * _readTensor(image, first_row + r, first_column + c, border="symmetric")
        for r, c in places
    )


@gp.operator
def variation(u):
    """The length of the slope at each point, which is smooth at 0."""
    own = _readTensor(u)
    down, right = _readTensor(u, _row + 1, _column) - own, _readTensor(u, _row, _column + 1) - own
    return _sqrt(down * down + right * right + 1e-4)


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


@gp.pipeline
def misfit(logits, sharp, seen):
    """Of the blur of a known picture."""
    return ((blurred(gp.ScalarField(sharp), softmax(gp.ScalarField(logits))) - gp.ScalarField(seen)) ** 2).sum()


@gp.pipeline
def energy(image, psf, seen, smooth):
    """Of a picture that is to be sharp."""
    u = gp.ScalarField(image)
    difference = blurred(u, gp.ScalarField(psf)) - gp.ScalarField(seen)
    return (difference**2).sum() + smooth * variation(u).sum()


def learned(function, start, *others, iterations):
    """The first argument that makes a function smallest."""
    both = gp.value_and_grad(function)

    def of_vectors(vector):
        loss, slope = both(np.float32(vector).reshape(start.shape), *others)
        return 1e4 * float(loss), 1e4 * np.float64(slope).ravel()

    begin, options = time.perf_counter(), {"maxiter": iterations, "maxfun": 2 * iterations}
    best = minimize(of_vectors, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    print(f"{function.name}: {best.nfev} gradients in {time.perf_counter() - begin:.2f} s")
    return np.float32(best.x).reshape(start.shape)


def shake():
    """The true weights: a line of some width, from the upper left to the lower right."""
    row, column = np.mgrid[:SIZE, :SIZE] - SIZE // 2
    return softmax(np.float32(-((row - 0.6 * column) ** 2) - (column / 3) ** 2))


def camera(sharp, noise, seed):
    """A picture as the camera sees it."""
    seen = blurred(gp.ScalarField(sharp), gp.ScalarField(shake())).numpy()
    return seen + np.float32(noise) * np.random.default_rng(seed).standard_normal(seen.shape, np.float32)


def deconvolved(chart, sharp, noise, smooth):
    """The weights learned from the chart, the picture as seen, and the picture learned."""
    row, column = np.mgrid[:SIZE, :SIZE] - SIZE // 2
    round_blur = np.float32(-(row**2 + column**2) / 8)
    psf = softmax(learned(misfit, round_blur, chart, camera(chart, noise, 1), iterations=3 * ITERATIONS))
    seen = camera(sharp, noise, 2)
    return psf, seen, learned(energy, seen, psf, seen, np.float32(smooth), iterations=ITERATIONS)


def root_mean_square(difference):
    return np.sqrt((difference**2).mean())


def main(argv=None):
    parser = common.parser(__doc__, "camera", "out/deconvolution.png")
    parser.add_argument("--noise", type=float, default=0.005, help="of what is seen (default: %(default)s)")
    parser.add_argument("--smooth", type=float, default=0.0005, help="weight of the variation (default: %(default)s)")
    args = parser.parse_args(argv)
    if args.noise < 0 or args.smooth < 0:
        raise common.error("--noise and --smooth must not be negative")
    whole = common.grey(common.load(args))
    top, left = (max(0, (n - 256) // 2 - 20) for n in whole.shape)
    sharp = np.ascontiguousarray(whole[top : top + 256, left : left + 256])
    chart = np.kron(np.random.default_rng(0).integers(0, 2, (32, 32)), np.ones((4, 4))).astype(np.float32)
    with gp.use_device(common.device(args.device)):
        psf, seen, image = deconvolved(chart, sharp, args.noise, args.smooth)
    wrong = np.abs(psf - shake()).sum() / 2
    before, after = root_mean_square(seen - sharp), root_mean_square(image - sharp)
    print(f"{wrong:.1%} of the blur lies in the wrong place")
    print(f"the picture is wrong by {before:.4f} as seen, by {after:.4f} in the end")
    assert wrong < 0.05, "the blur was not learned"
    assert after < 0.8 * before, "the picture has not become sharp"
    scale, rows = min(sharp.shape) // (2 * SIZE), sharp.shape[0]
    blur = np.zeros_like(sharp)
    for left, weights in ((0, shake()), (scale * SIZE, psf)):
        large = np.kron(weights / weights.max(), np.ones((scale, scale)))
        blur[(rows - len(large)) // 2 :, left:][: len(large), : len(large)] = large
    panels = {"sharp": sharp, "as seen": seen, "blur: true, learned": blur, "learned": image}
    common.save(args.output, common.sheet({name: common.to_bytes(panel) for name, panel in panels.items()}, columns=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
