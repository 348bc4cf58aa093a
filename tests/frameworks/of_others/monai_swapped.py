"""A plugin for pytest that puts bilateral filters of gpuop into the place of those of MONAI, for the tests that MONAI has of them.

MONAI's checks of gradients do not say when they fail; here they do, and in double precision.
"""

from __future__ import annotations

from math import ceil, prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import gpuop as gp
import gpuop.torch

from .counted_calls import counted, pytest_runtest_call, pytest_runtest_makereport  # noqa: F401 - hooks of pytest


def filtered(u: gp.Field, guide: gp.Field, spatial: gp.Field, sigma: gp.Field) -> gp.Field:
    """A bilateral filter of points (batch, channels, points) with a spatial weight for each pair of points."""
    distance = ((guide[:, :, :, None] - guide[:, :, None, :]) ** 2).sum(axis=1, keepdims=True)
    weights = spatial * np.exp(distance * (-0.5 / (sigma * sigma)))
    return (weights * u[:, :, None, :]).sum(axis=-1) / weights.sum(axis=-1)


@gpuop.torch.wrap
@gp.pipeline
def with_weights(image: Any, spatial: Any, sigma: Any) -> gp.Field:
    u = gp.Field(image)
    return filtered(u, u, gp.Field(spatial), gp.Field(sigma))


@gpuop.torch.wrap
@gp.pipeline
def trainable(image: Any, guide: Any, x: Any, y: Any, z: Any, sigma: Any, squares: Any, inside: Any) -> gp.Field:
    exponent = sum((gp.Field(squares)[n] * (-0.5 / gp.Field(s) ** 2) for n, s in enumerate((x, y, z))), start=0.0)
    return filtered(gp.Field(image), gp.Field(guide), np.exp(exponent) * gp.Field(inside), gp.Field(sigma))


def reach_of(sigma: Any, least: int) -> int:
    """Of the nearest tenth, so that differences do not go over its steps."""
    return max(ceil(5 * round(float(sigma), 1)) | 1, least) // 2


def weights_of_axis(n: int, sigma: float) -> np.ndarray[Any, Any]:
    """The weights between the points of an axis whose ends stand for what is outside."""
    weights, reach = np.zeros((n, n)), reach_of(sigma, 1)
    for own in range(n):
        for k in range(-reach, reach + 1):
            weights[own, min(max(own + k, 0), n - 1)] += np.exp(-k * k / (2 * sigma * sigma))
    return weights


def bilateral(input: torch.Tensor, spatial_sigma: float, color_sigma: float, fast_approx: bool) -> torch.Tensor:
    assert not fast_approx, "the approximation is another filter"
    spatial = np.ones((1, 1))
    for n in input.shape[2:]:
        spatial = np.kron(spatial, weights_of_axis(n, spatial_sigma))
    sigma = torch.tensor(float(color_sigma)).to(input)
    return with_weights(input.flatten(2), torch.from_numpy(spatial).to(input), sigma).reshape(input.shape)


def joint(input: torch.Tensor, guide: torch.Tensor, *sigmas: torch.Tensor) -> torch.Tensor:
    grid = (*input.shape[2:], 1, 1)[:3]
    places = np.indices(grid).reshape(3, -1)
    apart = places[:, :, None] - places[:, None, :]
    inside = np.all([abs(d) <= reach_of(s, 5) for d, s in zip(apart, sigmas, strict=False)], axis=0)
    tables = (torch.from_numpy(table.astype(float)).to(input) for table in (apart**2, inside))
    assert prod(grid) < 1000, "each point has a weight for each other one"
    return trainable(input.flatten(2), guide.flatten(2), *sigmas, *tables).reshape(input.shape)


def pytest_configure(config: Any) -> None:
    import monai.config.deviceconfig
    from monai.networks.layers import filtering

    monai.config.deviceconfig.USE_COMPILED = True  # for the marks of tests of what is compiled
    alone = lambda input, *sigmas: joint(input, input, *sigmas)  # noqa: E731
    names = "BilateralFilter", "TrainableBilateralFilterFunction", "TrainableJointBilateralFilterFunction"
    for name, function in zip(names, (bilateral, alone, joint), strict=True):
        setattr(filtering, name, SimpleNamespace(apply=counted(name, function)))
    check = torch.autograd.gradcheck

    def strict(function: Any, args: tuple[Any, ...], **options: Any) -> bool:
        doubles = [
            a.detach().double().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args
        ]
        return bool(check(function, doubles, **options | {"raise_exception": True}))

    torch.autograd.gradcheck = strict
