"""Deformable registration: the displacement of each point of a picture, or of a volume, from another one.

    python examples/registration.py [PICTURE] [--volume] [--iterations 40] [--output out/registration.png] [--device opencl:0]

The moving image is read between its points, at places that a field of displacements names; these go down the gradient of the
difference from the fixed image, which comes from the slopes of the reads. They are learned at the knots of a grid, wide at first,
then finer, and interpolated between them. The fixed image is the moving one under displacements that are known, so the learned
ones have an error. The same functions register pictures and volumes.
"""

import sys
import time

import common
import numpy as np
from scipy import ndimage, optimize

import gpuop as gp
from gpuop.dsl import *

FURTHEST = 6.0  # points that anything moves in the fixed image
KNOTS = (9, 17, 33)  # along each axis; of volumes without the last
SIZE, LAYERS = 256, 48  # rows and columns of the picture, and those of the volume


@gp.operator
def interpolated(moves, knots):
    """The displacement of each point, and that between the knots around it."""
    scales = [(k - 1) / (n - 1) for k, n in zip(knots.shape[:-1], moves.shape, strict=False)]
    here = (_layer, _row, _column)[-len(scales) :]
    return _readTensor(moves) + _sampleTensor(knots, *(x * s for x, s in zip(here, scales, strict=True)))


@gp.operator
def warp(image, moves):
    """The image at the place of each point plus its displacement."""
    here = (_layer, _row, _column)[-len(image.shape) :]
    return _sampleTensor(image, *(x + d for x, d in zip(here, _readTensor(moves), strict=True)))


@gp.pipeline
def refined(knots, moves):
    return interpolated(gp.VectorField(moves), gp.VectorField(knots))


@gp.pipeline
def warped(image, moves):
    return warp(gp.ScalarField(image), gp.VectorField(moves))


@gp.pipeline
def difference(knots, moves, moving, fixed):
    """The sum of squared differences of the images."""
    total = interpolated(gp.VectorField(moves), gp.VectorField(knots))
    return ((warp(gp.ScalarField(moving), total) - gp.ScalarField(fixed)) ** 2).sum()


def register(moving, fixed, iterations, gradient=None):
    """Displacements that make the fixed image of the moving one."""
    gradient = gradient or gp.value_and_grad(difference)
    moves = np.zeros((*moving.shape, moving.ndim), np.float32)
    for count in KNOTS[: 5 - moving.ndim]:
        shape = (*(count,) * moving.ndim, moving.ndim)

        def at(knots, moves=moves, shape=shape):
            loss, slope = gradient(np.float32(knots.reshape(shape)), moves, moving, fixed)
            return float(loss), np.float64(slope).ravel()

        options = {"maxiter": iterations, "ftol": 0, "gtol": 0}
        knots = optimize.minimize(at, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options).x
        moves = refined(np.float32(knots.reshape(shape)), moves)
    return moves


def displacements(shape, seed=3):
    """A smooth random field of vectors, 0 at the edges, of which the longest has FURTHEST points."""
    noise = np.random.default_rng(seed).standard_normal((*shape, len(shape)))
    smooth = ndimage.gaussian_filter(noise, (*(n / 8 for n in shape), 0), mode="constant")
    for axis, n in enumerate(shape):
        smooth *= np.expand_dims(np.sin(np.linspace(0, np.pi, n)), [k for k in range(len(shape) + 1) if k != axis])
    return np.float32(smooth * (FURTHEST / np.linalg.norm(smooth, axis=-1).max()))


def sample(size):
    """A volume of cells: blobs in noise."""
    rng = np.random.default_rng(1)
    dots = np.zeros((size,) * 3)
    dots[tuple(rng.integers(0, size, (3, size**3 // 600)))] = 1
    cells = ndimage.gaussian_filter(dots, 2)
    return np.float32(cells / cells.max())


def with_grid(picture, moves, step=16):
    """The picture with the lines of a grid that the displacements bend."""
    places = np.moveaxis(np.mgrid[: picture.shape[0], : picture.shape[1]], 0, -1) + moves
    lines = (np.abs((places + step / 2) % step - step / 2) < 0.6).any(-1)
    rgb = common.as_rgb(picture).copy()
    rgb[lines] = (255, 120, 0)
    return rgb


def main(argv=None):
    parser = common.parser(__doc__, "camera", "out/registration.png")
    parser.add_argument("--volume", action="store_true", help="a volume instead, of which the middle layer is drawn")
    parser.add_argument("--iterations", type=int, default=40, help="of L-BFGS for each grid (default: %(default)s)")
    args = parser.parse_args(argv)
    picture = common.grey(common.load(args))
    square = ndimage.zoom(picture, [SIZE / n for n in picture.shape], order=1)
    moving = sample(LAYERS) if args.volume else ndimage.gaussian_filter(square, 1)
    truth = displacements(moving.shape)
    with gp.use_device(common.device(args.device)):
        fixed = warped(moving, truth)
        begin = time.perf_counter()
        moves = register(moving, fixed, args.iterations)
        seconds = time.perf_counter() - begin
        result = warped(moving, moves)
    apart, left = (float(np.abs(image - fixed).mean()) for image in (moving, result))
    far, wrong = (float(np.linalg.norm(field, axis=-1).mean()) for field in (truth, moves - truth))
    print(f"{'×'.join(map(str, moving.shape))} points in {seconds:.1f} s: difference {apart:.3g} to {left:.3g}")
    print(f"points move {far:.2f} on average, and the displacements are wrong by {wrong:.2f}")
    assert wrong < 0.75 * far, "the displacements are not those of the fixed image"
    layer, larger = (LAYERS // 2, 5) if args.volume else (..., 1)
    panels = {
        "moving": moving[layer],
        "fixed": fixed[layer],
        "difference before": 0.5 + 2 * (moving - fixed)[layer],
        "and after": 0.5 + 2 * (result - fixed)[layer],
        "displacements, the truth": with_grid(fixed[layer], truth[layer][..., -2:]),
        "learned": with_grid(result[layer], moves[layer][..., -2:]),
    }
    panels = {name: np.repeat(np.repeat(common.as_rgb(p), larger, 0), larger, 1) for name, p in panels.items()}
    common.save(args.output, common.sheet(panels, columns=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
