"""A plugin for pytest that puts functions of gpuop into the place of those of Kornia, for the tests that Kornia has of them."""

from __future__ import annotations

import sys
from typing import Any

from .counted_calls import counted, pytest_runtest_call, pytest_runtest_makereport  # noqa: F401 - hooks of pytest

PARTS = {
    "filters": ("filter2d", "filter3d", "spatial_gradient", "median_blur", "_bilateral_blur"),
    "morphology": ("dilation", "erosion"),
    "color": (
        *("rgb_to_xyz", "xyz_to_rgb", "rgb_to_yuv", "yuv_to_rgb", "rgb_to_linear_rgb", "linear_rgb_to_rgb"),
        *("rgb_to_ycbcr", "ycbcr_to_rgb", "rgb_to_lab", "lab_to_rgb", "rgb_to_luv", "luv_to_rgb", "rgb_to_hsv"),
        *("hsv_to_rgb", "rgb_to_hls", "hls_to_rgb", "sepia_from_rgb", "rgb_to_grayscale"),
    ),
}


def pytest_configure(config: Any) -> None:
    import kornia
    import torch

    from . import kornia_functions as functions

    modules = [module for name, module in [*sys.modules.items()] if name.partition(".")[0] == "kornia"]
    for part, names in PARTS.items():
        for name in names:
            old = [m for m in modules if m.__name__.startswith(f"kornia.{part}") and hasattr(m, name)]
            new, known = counted(name, getattr(functions, name)), getattr(old[-1], name)
            for module in modules:
                for alias in [n for n, value in vars(module).items() if value is known]:
                    setattr(module, alias, new)
    assert kornia.filters.filter2d.__wrapped__ is functions.filter2d
    torch.nn.functional.grid_sample = counted("grid_sample", functions.grid_sample)
