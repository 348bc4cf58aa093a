"""Denoising with trained parameters: steps of Perona and Malik, and of total variation, as modules of a PyTorch model.

    python examples/denoising.py [--epochs 60] [--output out/denoising.png] [--device opencl:0]

Each module diffuses a noisy picture in eight steps. Two numbers of each are trained by Adam on crops of pictures: the contrast that
counts as an edge, and the rate; the share of each module in the result is a parameter of PyTorch's. A picture that was not trained
on has a smaller error in the end than with the best Gaussian. It wants PyTorch.
"""

import argparse
import sys
import time

import common
import numpy as np
from scipy import ndimage
from skimage import data

import gpuop as gp
from gpuop.dsl import *

NOISE, CROP, STEPS = 0.1, 96, 8


def differences(u):
    """Those of the four neighbours of a point."""
    own = _readTensor(u)
    return [_readTensor(u, offset=offset) - own for offset in ((-1, 0), (1, 0), (0, -1), (0, 1))]


@gp.operator
def perona_malik_step(u, contrast, rate):
    """Diffusion that stops at edges."""
    scale = 1 / (_readTensor(contrast) * _readTensor(contrast))
    return _readTensor(u) + _readTensor(rate) * sum(d * _exp(-d * d * scale) for d in differences(u))


@gp.operator
def variation_step(u, noisy, smoothing, rate):
    """Down the gradient of total variation, whose corner is smooth, and of the distance from what was seen."""
    corner = _readTensor(smoothing) * _readTensor(smoothing)
    flow = sum(d / _sqrt(d * d + corner) for d in differences(u))
    return _readTensor(u) + _readTensor(rate) * (0.25 * flow + _readTensor(noisy) - _readTensor(u))


@gp.pipeline
def perona_malik(noisy, contrast, rate):
    u, contrast, rate = gp.ScalarField(noisy), gp.ScalarField(contrast), gp.ScalarField(rate)
    for _ in range(STEPS):
        u = perona_malik_step(u, contrast, rate)
    return u


@gp.pipeline
def variation(noisy, smoothing, rate):
    noisy, smoothing, rate = gp.ScalarField(noisy), gp.ScalarField(smoothing), gp.ScalarField(rate)
    u = noisy
    for _ in range(STEPS):
        u = variation_step(u, noisy, smoothing, rate)
    return u


def model():
    """A module of PyTorch's with six numbers."""
    import torch

    import gpuop.torch

    def number(value):
        return torch.nn.Parameter(torch.tensor(value))

    class Denoiser(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.diffusion = gpuop.torch.Module(perona_malik, contrast=number(0.3), rate=number(0.05))
            self.variation = gpuop.torch.Module(variation, smoothing=number(0.1), rate=number(0.05))
            self.share = number(0.5)

        def forward(self, noisy):
            return self.share * self.diffusion(noisy) + (1 - self.share) * self.variation(noisy)

    return Denoiser()


def train(denoiser, pairs, epochs):
    """The mean squared error of each epoch; pairs are of a noisy and a clean picture."""
    import torch

    optimizer = torch.optim.Adam(denoiser.parameters(), lr=0.02)
    losses = []
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = sum((denoiser(noisy) - clean).square().mean() for noisy, clean in pairs) / len(pairs)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def noisy_and_clean(picture, rng):
    clean = picture[:CROP, :CROP]
    return np.float32(clean + NOISE * rng.standard_normal(clean.shape)), clean


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--epochs", type=int, default=60, help="of Adam (default: %(default)s)")
    parser.add_argument("--output", default="out/denoising.png", help="the PNG to write (default: %(default)s)")
    common.with_device(parser)
    args = parser.parse_args(argv)
    try:
        import torch
    except ImportError:
        raise common.error("PyTorch is missing: https://pytorch.org/get-started says how to install it") from None
    rng = np.random.default_rng(0)
    chelsea, coffee, camera = (common.grey(common.as_rgb(p)) for p in (data.chelsea(), data.coffee(), data.camera()))
    pairs = [noisy_and_clean(p, rng) for p in (chelsea[90:, 130:], coffee[150:, 200:], chelsea[:, 200:])]
    noisy, clean = noisy_and_clean(camera[80:, 170:], rng)
    with gp.use_device(common.device(args.device)):
        denoiser, begin = model(), time.perf_counter()
        losses = train(denoiser, [tuple(map(torch.tensor, pair)) for pair in pairs], args.epochs)
        seconds = time.perf_counter() - begin
        with torch.no_grad():
            result = denoiser(torch.tensor(noisy)).numpy()
    print(f"{args.epochs} epochs in {seconds:.1f} s: error {losses[0] ** 0.5:.4f} to {losses[-1] ** 0.5:.4f}")
    print(", ".join(f"{name} {value.item():.3f}" for name, value in denoiser.named_parameters()))
    blurs = [ndimage.gaussian_filter(noisy, sigma) for sigma in np.arange(0.4, 2, 0.1)]
    blurred = min(blurs, key=lambda blur: np.square(blur - clean).mean())
    panels = {"noisy": noisy, "best Gaussian": blurred, "learned": result, "clean": clean}
    errors = {name: float(np.sqrt(np.square(panel - clean).mean())) for name, panel in panels.items()}
    print("not trained on: " + ", ".join(f"{name} {error:.4f}" for name, error in errors.items()))
    assert errors["learned"] < errors["best Gaussian"], "the parameters are worse than a blur"
    larger = {name: np.kron(panel, np.ones((3, 3))) for name, panel in panels.items()}
    common.save(args.output, common.sheet(larger, columns=4))
    return 0


if __name__ == "__main__":
    sys.exit(main())
