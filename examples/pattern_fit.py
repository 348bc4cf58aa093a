"""A Gray–Scott pattern fitted to a target: four rates of the reaction are learned from two noisy pictures of it.

The pattern grows from a few seeds in a thousand iterations of one kernel, and the gradient of the misfit goes back through
all of them: `gp.iterate` keeps some states as checkpoints, and computes the others again from these. SciPy's L-BFGS takes
the steps: first to an early picture, which tells the way from afar, then to the late one, which is exact.

    python examples/pattern_fit.py [--size 128] [--steps 1000] [--checkpoints 20] [--output out/pattern_fit.png]
"""

import argparse
import sys
import time

import common
import numpy as np
from scipy.optimize import minimize

import gpuop as gp
from gpuop.dsl import *

NAMES = ("diffusion of u", "diffusion of v", "feed", "kill")
TRUTH = np.array([0.16, 0.08, 0.037, 0.060])
GUESS = np.array([0.19, 0.07, 0.031, 0.057])


@gp.operator
def react(u, v, rates):
    """U is fed and eaten by V, which dies; both spread on a torus."""

    def spread(x):
        near = sum(_readTensor(x, _row + r, _column + c, border="wrap") for r, c in ((-1, 0), (1, 0), (0, -1), (0, 1)))
        far = sum(_readTensor(x, _row + r, _column + c, border="wrap") for r in (-1, 1) for c in (-1, 1))
        return 0.2 * near + 0.05 * far - _readTensor(x)

    of_u, of_v, feed, kill = (_readTensor(rates, k) for k in range(4))
    own, eater = _readTensor(u), _readTensor(v)
    eaten = own * eater * eater
    return own + of_u * spread(u) - eaten + feed * (1 - own), eater + of_v * spread(v) + eaten - (feed + kill) * eater


def seeds(size):
    """U everywhere, and some squares of V."""
    u, v = np.ones((size, size), np.float32), np.zeros((size, size), np.float32)
    for row, column in np.random.default_rng(1).integers(0, size - 6, (max(3, size * size // 800), 2)):
        u[row : row + 6, column : column + 6] = 0.5
        v[row : row + 6, column : column + 6] = 0.25
    return u, v


@gp.pipeline
def grown(rates, u, v, steps, checkpoints=None):
    """V after some steps."""
    rates = gp.ScalarField(rates)
    state = gp.ScalarField(u), gp.ScalarField(v)
    return gp.iterate(lambda u, v: react(u, v, rates), state, times=steps, checkpoints=checkpoints)[1]


@gp.pipeline
def misfit(rates, u, v, target, steps, checkpoints):
    return ((grown(rates, u, v, steps, checkpoints) - gp.ScalarField(target)) ** 2).mean()


def fitted(scale, u, v, target, steps, checkpoints):
    """The rates, as shares of the guess, whose pattern is nearest to the target; and the number of gradients."""
    both = gp.value_and_grad(misfit)

    def scaled(scale):
        loss, slope = both(np.float32(scale * GUESS), u, v, target, steps, checkpoints)
        return 1e3 * float(loss), 1e3 * np.float64(slope) * GUESS

    nearest = minimize(scaled, scale, jac=True, method="L-BFGS-B", bounds=[(0.6, 1.5)] * 4)
    return nearest.x, nearest.nfev


def fit(size, steps, checkpoints, noise):
    """The rates learned, and the pictures of them."""
    u, v = seeds(size)
    rng, scale = np.random.default_rng(2), np.ones(4)
    for some in (steps * 3 // 10, steps):
        target = grown(np.float32(TRUTH), u, v, some)
        target += noise * rng.standard_normal(target.shape, np.float32)
        start = time.perf_counter()
        scale, count = fitted(scale, u, v, target, some, checkpoints)
        print(f"{count} gradients of {some} iterations in {time.perf_counter() - start:.2f} s")
    patterns = (grown(np.float32(rates), u, v, steps) for rates in (GUESS, scale * GUESS))
    return scale * GUESS, dict(zip(("target", "guess", "learned"), (target, *patterns), strict=True))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=128, help="of the square grid (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=1000, help="iterations to the late picture (default: %(default)s)")
    parser.add_argument("--checkpoints", type=int, default=20, help="states in memory (default: %(default)s)")
    parser.add_argument("--noise", type=float, default=0.02, help="of both pictures (default: %(default)s)")
    parser.add_argument("--output", default="out/pattern_fit.png", help="the PNG to write (default: %(default)s)")
    common.with_device(parser)
    args = parser.parse_args(argv)
    if args.size < 16 or args.steps < 10 or args.checkpoints < 1:
        raise common.error("--size must be at least 16, --steps at least 10, --checkpoints at least 1")
    with gp.use_device(common.device(args.device)):
        rates, pictures = fit(args.size, args.steps, args.checkpoints, args.noise)
    for name, guess, rate, truth in zip(NAMES, GUESS, rates, TRUTH, strict=True):
        print(f"{name}: guessed {guess:.3f}, learned {rate:.5f}, true {truth:.3f}")
    wrong = np.abs(rates / TRUTH - 1).max()
    assert wrong < 0.02, f"a rate is wrong by {wrong:.1%}"
    print(f"all rates within {wrong:.2%} of the truth")
    brightest = pictures["target"].max()
    panels = {
        name: common.to_bytes(picture / brightest).repeat(2, 0).repeat(2, 1) for name, picture in pictures.items()
    }
    common.save(args.output, common.sheet(panels))
    return 0


if __name__ == "__main__":
    sys.exit(main())
