"""Full-waveform inversion: the speeds of sound in the ground, learned from the echoes of shots at its surface.

    python examples/seismic.py [--iterations 120] [--output out/seismic.png] [--device opencl:0]

Waves run down from each shot, and receivers in the row of the shots record what comes back. From a blurred model the speeds go
down the gradient of the misfit of these records, which `gp.iterate` takes back through all steps in time: of its states only
CHECKPOINTS are in memory at a time, the others are computed again from these. `gp.vmap` makes all shots one batch.
"""

import argparse
import sys
import time

import common
import numpy as np
from scipy import ndimage, optimize

import gpuop as gp
from gpuop.dsl import *

ROWS, COLUMNS, STEPS = 56, 96, 360  # of 10 m, and of 1.5 ms
COURANT = 1.5e-3 / 10  # speeds times it are points a step
SURFACE, EDGE, SHOTS, CHECKPOINTS = 12, 12, 6, 24  # row of shots, width of the sponge, shots, states in memory
SLOWEST, FASTEST = 1300, 2800  # m/s


@gp.operator
def wave(p, before, speed, sponge, wavelet, tick, shot):
    """The pressure a step later."""
    own, rate = _readTensor(p), _readTensor(speed) * COURANT
    around = sum(_readTensor(p, offset=o, border="zero") for o in ((-1, 0), (1, 0), (0, -1), (0, 1)))
    here = (_row == SURFACE) & (_column == _readTensor(shot))
    source = _where(here, _readTensor(wavelet, _readTensor(tick)), 0.0)
    fade = _readTensor(sponge)
    return fade * (2 * own - fade * _readTensor(before) + rate * rate * (around - 4 * own) + source)


@gp.operator
def with_row(record, p, tick):
    """The record, STEPS × COLUMNS, with the row of this step."""
    return _where(_row == _readTensor(tick), _readTensor(p, SURFACE, _column), _readTensor(record))


@gp.operator
def with_squares(sums, p, tick, observed):
    """The misfit so far at each receiver."""
    difference = _readTensor(p, SURFACE, _column) - _readTensor(observed, _readTensor(tick), _column)
    return _readTensor(sums) + difference * difference


def propagate(speed, shot, receivers, receive):
    """The last value of `receivers`, whose next one in each step `receive(receivers, p, tick)` gives."""
    still = gp.ScalarField(np.zeros((ROWS, COLUMNS), np.float32))
    edge, wavelet = gp.ScalarField(sponge()), gp.ScalarField(ricker())

    def step(p, before, receivers, tick):
        return wave(p, before, speed, edge, wavelet, tick, shot), p, receive(receivers, p, tick), tick + 1

    start = (still, still, receivers, gp.ScalarField(np.int32(0)))
    return gp.iterate(step, start, times=STEPS, checkpoints=CHECKPOINTS)[2]


@gp.pipeline
def records(speed, shots):
    """Records of all shots: SHOTS × STEPS × COLUMNS."""
    speed, silence = gp.ScalarField(speed), gp.ScalarField(np.zeros((STEPS, COLUMNS), np.float32))
    return gp.vmap(lambda shot: propagate(speed, shot, silence, with_row))(gp.ScalarField(shots))


@gp.pipeline
def misfit(speed, shots, observed):
    """The sum of squared differences from the records observed."""
    speed, zeros = gp.ScalarField(speed), gp.ScalarField(np.zeros(COLUMNS, np.float32))

    def of_shot(shot, observed):
        return propagate(speed, shot, zeros, lambda sums, p, tick: with_squares(sums, p, tick, observed)).sum()

    return gp.vmap(of_shot)(gp.ScalarField(shots), gp.ScalarField(observed)).sum()


def ricker(hertz=14):
    """The pressure of a shot over time."""
    squares = (np.pi * hertz * (np.arange(STEPS) * 1.5e-3 - 1.2 / hertz)) ** 2
    return np.float32((1 - 2 * squares) * np.exp(-squares))


def sponge():
    """Below 1 near the edges, so that waves fade there."""
    rows, columns = (np.minimum(np.arange(n), np.arange(n)[::-1]) for n in (ROWS, COLUMNS))
    inside = np.minimum(np.minimum(rows[:, None], columns), EDGE)
    return np.float32(np.exp(-((0.02 * (EDGE - inside)) ** 2)))


def ground():
    """Speeds in layers with a fault, below water, and in a lens."""
    row, column = np.mgrid[:ROWS, :COLUMNS]
    depth = row + 4 * np.sin(column / 17) + 5 * (column > 60)
    speed = 1500 + 300 * (depth > 24) + 350 * (depth > 36) + 300 * (depth > 46)
    speed[(row - 30) ** 2 * 4 + (column - 40) ** 2 < 120] = 1400
    return np.float32(speed)


def invert(value_and_slope, start, iterations):
    """The speeds of the least misfit near those of the start, and the misfits on the way."""
    below, losses = np.arange(ROWS)[:, None] > SURFACE + 3, []  # the water above is as it is

    def at(speed):
        loss, slope = value_and_slope(np.float32(speed.reshape(start.shape)))
        losses.append(float(loss))
        return losses[-1], np.float64(slope * below).ravel()

    bounds, options = [(SLOWEST, FASTEST)] * start.size, {"maxiter": iterations, "ftol": 0, "gtol": 0}
    result = optimize.minimize(at, start.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return result.x.reshape(start.shape), losses


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--iterations", type=int, default=120, help="of L-BFGS (default: %(default)s)")
    parser.add_argument("--output", default="out/seismic.png", help="the PNG to write (default: %(default)s)")
    common.with_device(parser)
    args = parser.parse_args(argv)
    truth, start = ground(), np.float32(ndimage.gaussian_filter(ground(), 6))
    start[: SURFACE + 4] = truth[: SURFACE + 4]
    shots = np.int32(np.linspace(EDGE + 2, COLUMNS - EDGE - 3, SHOTS))
    with gp.use_device(common.device(args.device)):
        observed = records(truth, shots)
        begin = time.perf_counter()
        gradient = gp.value_and_grad(misfit)
        learned, losses = invert(lambda speed: gradient(speed, shots, observed), start, args.iterations)
    seconds, inside = time.perf_counter() - begin, np.s_[SURFACE:-EDGE, EDGE:-EDGE]
    errors = [np.sqrt(np.mean((model - truth)[inside] ** 2)) for model in (start, learned)]
    print(f"{len(losses)} gradients in {seconds:.1f} s: misfit {losses[0]:.3g} to {min(losses):.3g}")
    print(f"speeds are wrong by {errors[0]:.0f} m/s at the start, by {errors[1]:.0f} m/s in the end")
    assert errors[1] < errors[0], "the misfit leads away from the truth"
    models = {"speeds, the truth": truth, "start": start, "learned from records": learned}
    panels = {name: (model - SLOWEST) / (FASTEST - SLOWEST) for name, model in models.items()}
    panels["record of a shot"] = observed[SHOTS // 2][:: STEPS // ROWS][:ROWS] * 3 + 0.5
    larger = {name: common.as_rgb(np.kron(panel, np.ones((4, 4)))) for name, panel in panels.items()}
    common.save(args.output, common.sheet(larger, columns=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
