"""Functions of Kornia as pipelines of gpuop, with the signatures that Kornia's own tests call them by."""

from __future__ import annotations

import functools
from math import pi

import numpy as np
import torch

import gpuop as gp
import gpuop.ndimage as ndi
import gpuop.torch
from gpuop.dsl import *

BORDERS = {"reflect": "reflect", "replicate": "clamp", "circular": "wrap", "constant": "zero"}
REFERENCE_WHITE = 0.95047, 1.0, 1.08883


def over_batches(f, axes):
    """A function of an image over the batch and the channels, where `axes` is what the batch of each argument is along."""
    return gp.vmap(gp.vmap(f, tuple(0 if n == 0 else None for n in range(len(axes)))), axes)


# --- filters


@gp.operator
def window_sum(image, weights, size, border):
    total = 0.0
    for place in np.ndindex(*size):
        offset = tuple(at - (n - 1) // 2 for at, n in zip(place, size, strict=True))
        total = total + _readTensor(weights, *place) * _readTensor(image, offset=offset, border=border)
    return total


@gpuop.torch.wrap
@gp.pipeline
def correlate(image, weights, border):
    size = tuple(weights.shape[1:])
    f = over_batches(lambda u, w: window_sum(u, w, size, border), (0, None if weights.shape[0] == 1 else 0))
    w = gp.ScalarField(weights)
    return f(gp.ScalarField(image), w[0] if weights.shape[0] == 1 else w)


def _filtered(image, kernel, border_type, normalized, behaviour):
    kernel = kernel.to(image)
    if behaviour.lower() == "conv":
        kernel = kernel.flip(tuple(range(1, kernel.ndim)))
    if normalized:
        kernel = kernel / kernel.abs().sum(tuple(range(1, kernel.ndim)), keepdim=True)
    return correlate(image, kernel, BORDERS[border_type.lower()])


def filter2d(input, kernel, border_type="reflect", normalized=False, padding="same", behaviour="corr"):
    out = _filtered(input, kernel, border_type, normalized, behaviour)
    if padding.lower() == "same":
        return out
    (h, w), (m, n) = input.shape[-2:], kernel.shape[-2:]
    top, left = (m - 1) // 2, (n - 1) // 2
    return out[..., top : top + h - m + 1, left : left + w - n + 1]


def filter3d(input, kernel, border_type="replicate", normalized=False, behaviour="corr"):
    return _filtered(input, kernel, border_type, normalized, behaviour)


@gpuop.torch.wrap
@gp.pipeline
def gradients_of_window(image, weights):
    u, w, size = gp.ScalarField(image), gp.ScalarField(weights), tuple(weights.shape[1:])
    each = gp.vmap(lambda weights: over_batches(lambda v: window_sum(v, weights, size, "clamp"), (0,))(u), 0, 2)
    return each(w)


def spatial_gradient(input, mode="sobel", order=1, normalized=True):
    from kornia.filters.kernels import get_spatial_gradient_kernel2d, normalize_kernel2d

    kernel = get_spatial_gradient_kernel2d(mode, order, device=input.device, dtype=input.dtype)
    return gradients_of_window(input, normalize_kernel2d(kernel) if normalized else kernel)


@gpuop.torch.wrap
@gp.pipeline
def medians(image, size):
    return over_batches(lambda u: ndi.median_filter(u, size=size, mode="constant"), (0,))(gp.ScalarField(image))


def median_blur(input, kernel_size):
    return medians(input, (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size))


@gpuop.torch.wrap
@gp.pipeline
def bilateral(image, guide, sigma_color, weights, size, mode, squared):
    """Over pairs of an image (C, H, W) and a guide; the weights of all channels are those of the guide's distances."""

    def one(u, g, sigma, w):
        reach = [(0, 0), *((n // 2, n // 2) for n in size)]
        u_around, g_around = np.pad(u, reach, mode=mode), np.pad(g, reach, mode=mode)
        total = norm = 0.0
        h, columns = u.shape[1:]
        for i, j in np.ndindex(*size):
            d = g_around[:, i : i + h, j : j + columns] - g
            distance = (d * d).sum(axis=0) if squared else np.abs(d).sum(axis=0) ** 2
            weight = w[i, j] * np.exp(-0.5 / sigma**2 * distance)
            total, norm = total + weight * u_around[:, i : i + h, j : j + columns], norm + weight
        return total / norm

    return gp.vmap(one)(*(gp.ScalarField(array) for array in (image, guide, sigma_color, weights)))


def _bilateral_blur(
    input, guidance, kernel_size, sigma_color, sigma_space, border_type="reflect", color_distance_type="l1"
):
    from kornia.filters.kernels import get_gaussian_kernel2d

    size = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
    batch = input.shape[0]
    space = get_gaussian_kernel2d(size, sigma_space, device=input.device, dtype=input.dtype).expand(batch, *size)
    color = torch.as_tensor(sigma_color, dtype=input.dtype, device=input.device).reshape(-1).expand(batch)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap", "constant": "constant"}
    guide = input if guidance is None else guidance
    return bilateral(input, guide, color, space, size, modes[border_type], color_distance_type == "l2")


# --- morphology


@gp.operator
def extreme_of_window(image, weights, size, origin, border, largest):
    best = None
    for i, j in np.ndindex(*size):
        value = _readTensor(image, offset=(i - origin[0], j - origin[1]), border=border)
        value = (
            value + _readTensor(weights, size[0] - 1 - i, size[1] - 1 - j)
            if largest
            else value - _readTensor(weights, i, j)
        )
        best = value if best is None else (_max if largest else _min)(best, value)
    return best


@gpuop.torch.wrap
@gp.pipeline
def extremes(image, weights, origin, border, largest):
    size, w = tuple(weights.shape), gp.ScalarField(weights)
    return over_batches(lambda u: extreme_of_window(u, w, size, origin, border, largest), (0,))(gp.ScalarField(image))


def _check(tensor, kernel):
    """Refuse what Kornia refuses, in its words."""
    for name, value, rank in (("Input", tensor, 4), ("Kernel", kernel, 2)):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name} type is not a torch.Tensor. Got {type(value)}")
        if value.ndim != rank:
            raise ValueError(f"{name} size must have {rank} dimensions. Got {value.ndim}")


def _extreme(largest):
    """Dilation, or else erosion."""

    def extreme(
        tensor,
        kernel,
        structuring_element=None,
        origin=None,
        border_type="geodesic",
        border_value=0.0,
        max_val=1e4,
        engine="unfold",
    ):
        _check(tensor, kernel)
        heights = torch.zeros_like(kernel) if structuring_element is None else structuring_element
        heights = torch.where(kernel == 0, -max_val, heights).to(tensor)
        outside = {"constant": float(border_value), "geodesic": -max_val if largest else max_val}
        middle = tuple(n // 2 for n in kernel.shape) if origin is None else tuple(origin)
        return extremes(tensor, heights, middle, outside.get(border_type) or BORDERS[border_type], largest)

    return extreme


dilation, erosion = _extreme(True), _extreme(False)


# --- warps


@gpuop.torch.wrap
@gp.pipeline
def sampled(image, grid, nearest, mode, aligned):
    def coordinate(g, n):
        return (g + 1.0) * (0.5 * (n - 1)) if aligned else ((g + 1.0) * n - 1.0) * 0.5

    def one(u, places):
        at = [coordinate(places[..., axis], n) for axis, n in zip(reversed(range(u.ndim)), u.shape, strict=True)]
        return ndi.map_coordinates(u, at, order=0 if nearest else 1, mode=mode)

    return over_batches(one, (0, 0))(gp.ScalarField(image), gp.ScalarField(grid))


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    outside = {"zeros": "grid-constant", "border": "nearest", "reflection": "mirror" if align_corners else "reflect"}
    return sampled(input, grid, mode == "nearest", outside[padding_mode], bool(align_corners))


# --- colours


def pointwise(f):
    """A function of the three planes of images (…, 3, H, W), which gives planes."""

    @gp.pipeline
    def converted(image):
        u = gp.ScalarField(image)
        return np.stack(f(*(u[..., n, :, :] for n in range(3))), axis=-3)

    wrapped = gpuop.torch.wrap(converted)

    @functools.wraps(f)
    def call(image, *args, **kwargs):
        if not isinstance(image, torch.Tensor):
            raise TypeError(f"Input type is not a torch.Tensor. Got {type(image)}")
        if image.ndim < 3 or image.shape[-3] != 3:
            raise ValueError(f"Input size must have a shape of (*, 3, H, W). Got {image.shape}")
        return wrapped(image)

    return call


def _matrix(*rows):
    return lambda r, g, b: [x * r + y * g + z * b for x, y, z in rows]


def _linear(v):
    return np.where(v > 0.04045, ((v + 0.055) / 1.055) ** 2.4, v / 12.92)


def _gamma(v):
    return np.where(v > 0.0031308, 1.055 * np.maximum(v, 0.0031308) ** (1 / 2.4) - 0.055, 12.92 * v)


_to_xyz = _matrix((0.412453, 0.35758, 0.180423), (0.212671, 0.71516, 0.072169), (0.019334, 0.119193, 0.950227))
_from_xyz = _matrix(
    (3.2404813432005266, -1.5371515162713185, -0.4985363261688878),
    (-0.9692549499965682, 1.8759900014898907, 0.0415559265582928),
    (0.0556466391351772, -0.2040413383665112, 1.0573110696453443),
)
rgb_to_xyz, xyz_to_rgb = pointwise(_to_xyz), pointwise(_from_xyz)
rgb_to_yuv = pointwise(_matrix((0.299, 0.587, 0.114), (-0.147, -0.289, 0.436), (0.615, -0.515, -0.1)))
yuv_to_rgb = pointwise(_matrix((1.0, 0.0, 1.14), (1.0, -0.396, -0.581), (1.0, 2.029, 0.0)))
rgb_to_linear_rgb = pointwise(lambda *planes: [*map(_linear, planes)])
linear_rgb_to_rgb = pointwise(lambda *planes: [*map(_gamma, planes)])


@pointwise
def rgb_to_ycbcr(r, g, b):
    y = 0.299 * r + 0.587 * g + 0.114 * b
    return y, (b - y) * 0.564 + 0.5, (r - y) * 0.713 + 0.5


@pointwise
def ycbcr_to_rgb(y, cb, cr):
    cb, cr = cb - 0.5, cr - 0.5
    return [np.clip(v, 0, 1) for v in (y + 1.403 * cr, y - 0.714 * cr - 0.344 * cb, y + 1.773 * cb)]


def _root(v):
    return np.where(v > 0.008856, np.maximum(v, 0.008856) ** (1 / 3), 7.787 * v + 4 / 29)


@pointwise
def rgb_to_lab(r, g, b):
    xyz = _to_xyz(*map(_linear, (r, g, b)))
    x, y, z = (_root(v / white) for v, white in zip(xyz, REFERENCE_WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _lab_to_rgb(l, a, b):  # noqa: E741 - as colours are named
    y = (l + 16) / 116
    roots = a / 500 + y, y, np.maximum(y - b / 200, 0.0)
    xyz = (np.where(v > 0.2068966, v**3, (v - 4 / 29) / 7.787) for v in roots)
    return [*map(_gamma, _from_xyz(*(v * white for v, white in zip(xyz, REFERENCE_WHITE, strict=True))))]


_plain_lab, _clipped_lab = (
    pointwise(_lab_to_rgb),
    pointwise(lambda *planes: [np.clip(v, 0, 1) for v in _lab_to_rgb(*planes)]),
)


def lab_to_rgb(image, clip=True):
    return (_clipped_lab if clip else _plain_lab)(image)


def _white_point():
    x, y, z = REFERENCE_WHITE
    return 4 * x / (x + 15 * y + 3 * z), 9 * y / (x + 15 * y + 3 * z)


@pointwise
def rgb_to_luv(r, g, b):
    x, y, z = _to_xyz(*map(_linear, (r, g, b)))
    light = np.where(y > 0.008856, 116 * np.maximum(y, 0.008856) ** (1 / 3) - 16, 903.3 * y)
    (u, v), scale = _white_point(), x + 15 * y + 3 * z + 1e-12
    return light, 13 * light * (4 * x / scale - u), 13 * light * (9 * y / scale - v)


@pointwise
def luv_to_rgb(light, u, v):
    y = np.where(light > 7.999625, ((light + 16) / 116) ** 3, light / 903.3)
    a, d = (white + w / (13 * light + 1e-12) for white, w in zip(_white_point(), (u, v), strict=True))
    c = 3 * y * (5 * d - 3)
    z = ((a - 4) * c - 15 * a * d * y) / (12 * d + 1e-12)
    return [*map(_gamma, _from_xyz(-(c / (d + 1e-12) + 3 * z), y, z))]


@pointwise
def rgb_to_hsv(r, g, b):
    top = np.maximum(np.maximum(r, g), b)
    width = top - np.minimum(np.minimum(r, g), b)
    span = np.where(width == 0, 1.0, width)
    sector = np.where((r >= g) & (r >= b), g - b, np.where(g >= b, b - r + 2 * span, r - g + 4 * span))
    return 2 * pi * ((sector / span / 6) % 1.0), width / (top + 1e-8), top


@pointwise
def hsv_to_rgb(h, s, v):
    at = h * (6 / (2 * pi))
    sector = np.floor(at) % 6
    f = at % 6 - sector
    low, falling, rising = v * (1 - s), v * (1 - f * s), v * (1 - (1 - f) * s)

    def of(*six):
        value = six[5]
        for n in reversed(range(5)):
            value = np.where(sector == n, six[n], value)
        return value

    return (
        of(v, falling, low, low, rising, v),
        of(rising, v, v, falling, low, low),
        of(low, low, rising, v, v, falling),
    )


@pointwise
def rgb_to_hls(r, g, b):
    top, low = np.maximum(np.maximum(r, g), b), np.minimum(np.minimum(r, g), b)
    width, both = top - low, top + low
    r_, g_, b_ = (v / (width + 1e-8) for v in (r, g, b))
    red = (r >= g) & (r >= b)
    sector = np.where(red, (g_ - b_) % 6, np.where(g >= b, b_ - r_ + 2, r_ - g_ + 4))
    return sector * (pi / 3), both / 2, width / (np.where(both < 1, both, 2 - both) + 1e-8)


@pointwise
def hls_to_rgb(h, light, s):
    reach = s * np.minimum(light, 1 - light)

    def of(shift):
        k = (h * (6 / pi) + shift) % 12
        return light - reach * np.clip(np.minimum(k - 3, 9 - k), -1, 1)

    return of(0.0), of(8.0), of(4.0)


@gpuop.torch.wrap
@gp.pipeline
def sepia(image, rescale):
    u = gp.ScalarField(image)
    rows = (0.393, 0.769, 0.189), (0.349, 0.686, 0.168), (0.272, 0.534, 0.131)
    out = np.stack(_matrix(*rows)(*(u[..., n, :, :] for n in range(3))), axis=-3)
    return out / (out.max(axis=(-2, -1), keepdims=True) + 1e-6) if rescale else out


def sepia_from_rgb(input, rescale=True, eps=1e-6):
    if input.ndim < 3 or input.shape[-3] != 3:
        raise ValueError(f"Input size must have a shape of (*, 3, H, W). Got {input.shape}")
    return sepia(input, rescale)


@gpuop.torch.wrap
@gp.pipeline
def gray(image, weights):
    u, w = gp.ScalarField(image), gp.ScalarField(weights)
    return u[..., 0:1, :, :] * w[0] + u[..., 1:2, :, :] * w[1] + u[..., 2:3, :, :] * w[2]


def rgb_to_grayscale(image, rgb_weights=None):
    if image.ndim < 3 or image.shape[-3] != 3:
        raise ValueError(f"Input size must have a shape of (*, 3, H, W). Got {image.shape}")
    weights = torch.tensor((0.299, 0.587, 0.114)) if rgb_weights is None else rgb_weights
    return gray(image, weights.to(image))
