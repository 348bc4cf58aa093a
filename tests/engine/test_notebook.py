"""Representations of fields and of source in notebooks."""

from __future__ import annotations

import base64
import io
import re
import sys

import numpy as np
import pytest
from PIL import Image

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine.show.html import MOST, NO_NUMBER, pictures, png
from tests.harness import gamma, image

ANGLES = ((0, (255, 0, 0)), (120, (0, 255, 0)), (240, (0, 0, 255)), (60, (255, 255, 0)))


def shown(field):
    """The images of a field's HTML, as arrays, and its text."""
    html = field._repr_html_()
    images = [Image.open(io.BytesIO(base64.b64decode(data))) for data in re.findall(r"base64,([^\"]+)", html)]
    return [np.asarray(each) for each in images], re.sub(r"<[^>]*>", " ", html)


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 3), (3, 5, 4), (1, 1)])
def test_the_png_writer(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png(pixels)))), pixels)


def test_scalars_are_grey(device):
    photo = gp.ScalarField(np.array([[1, 2, np.nan], [np.inf, 3, 1]], "f"))
    (pixels,), text = shown(photo)
    assert (
        pixels[0, 0].tolist() == [0, 0, 0] and pixels[1, 1].tolist() == [255] * 3 and pixels[0, 1].tolist() == [127] * 3
    )
    assert tuple(pixels[0, 2]) == NO_NUMBER and pixels[1, 0].tolist() == [255] * 3
    assert "photo 2×3 float32" in text and "black 1, white 3, 1 NaN (magenta)" in text


def test_it_evaluates(device):
    (pixels,), text = shown(gamma(gp.ScalarField(image(6, 7))) * 0)
    assert not pixels.any() and "6×7 float32" in text


def test_truth_values():
    (pixels,), _ = shown(gp.ScalarField(np.array([[True, False]])))
    assert pixels[0].tolist() == [[255] * 3, [0] * 3]
    (pixels,), _ = shown(gp.ScalarField(np.array([[True, True]])))
    assert pixels[0].tolist() == [[255] * 3] * 2


@pytest.mark.parametrize("kind", ["vector", "complex"])
def test_pairs_are_on_a_colour_wheel(kind):
    turn = np.deg2rad([angle for angle, _ in ANGLES])
    pairs = np.stack([np.cos(turn), np.sin(turn)], -1)[None].astype("f")
    field = gp.VectorField(pairs) if kind == "vector" else gp.ComplexField(pairs[..., 0] + 1j * pairs[..., 1])
    (pixels,), text = shown(field)
    assert np.abs(pixels[0].astype(int) - [color for _, color in ANGLES]).max() <= 1
    assert "hue atan2(y, x), red 0°, green 120°; brightness length, up to 1" in text
    (dark,), _ = shown(gp.VectorField(np.array([[[1, 0], [0, 0]]], "f")))
    assert dark[0, 1].tolist() == [0, 0, 0]


def test_colours():
    (pixels,), text = shown(gp.VectorField(np.array([[[0, 0.5, 1], [-1, 2, np.nan]]], "f")))
    assert pixels[0, 0].tolist() == [0, 127, 255] and tuple(pixels[0, 1]) == NO_NUMBER
    assert "RGB clipped to 0…1, values -1 … 2" in text
    levels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    assert np.array_equal(shown(gp.ColorField(levels))[0][0], levels)
    assert np.array_equal(shown(gp.VectorField(levels[..., :3]))[0][0], levels[..., :3])
    assert shown(gp.VectorField(levels / 23))[0][0].shape == (2, 3, 4)


def test_volumes_show_their_middles():
    volume = np.zeros((3, 4, 5), "f")
    volume[1], volume[:, 2], volume[..., 2] = 1, 2, 3
    images, text = shown(gp.ScalarField(volume))
    assert [each.shape[:2] for each in images] == [(4, 5), (3, 5), (3, 4)]
    assert "layer 1 of 3" in text and "row 2 of 4" in text and "column 2 of 5" in text


def test_lines_are_plotted():
    (pixels,), text = shown(gp.ScalarField(np.linspace(0, 1, 4, dtype="f")))
    assert pixels.shape == (96, 512, 3) and "from 0 to 1" in text
    ink = [np.flatnonzero((pixels[:, column] != 255).any(-1)) for column in (0, 511)]
    assert ink[0].min() > 80 and ink[1].max() < 12, "rising"
    assert shown(gp.VectorField(image(2000, 3)))[0][0].shape == (96, 512, 3)
    assert shown(gp.ComplexField(np.exp(1j * np.arange(9))))[0][0].shape == (96, 504, 3)
    (pixels,), _ = shown(gp.ScalarField(np.array([1, np.nan, 2], "f")))
    assert (pixels == NO_NUMBER).all(-1).any()


def test_large_images_are_reduced():
    (pixels,), _ = shown(gp.ScalarField(np.tile(np.array([[0, 255], [255, 0]], np.uint8), (600, 800))))
    assert max(pixels.shape) <= MOST and pixels.shape[:2] == (300, 400)
    assert (pixels == 128).all() or (pixels == 127).all(), "the mean"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (gp.ScalarField(3), "3"),
        (gp.Parameter([1.5, 2.5]), "[1.5 2.5]"),
        (gp.MatrixField(np.eye(2)), "[[1. 0.]"),
        (gp.VectorField(np.ones((5, 6, 9))), "270   0   1   1   1   0"),
        (gp.MatrixField(np.ones((5, 6, 2, 2))), "120   0   1   1   1   0"),
        (gp.ScalarField(np.zeros((0, 4))), "[]"),
        (gp.ScalarField(np.zeros((0, 4, 9))), "[]"),
    ],
)
def test_others_are_numbers(field, text):
    images, result = shown(field)
    assert images == [] and text in re.sub(r" {2,}", "   ", result)


def test_fields_without_values_say_why():
    seen = []

    @gp.pipeline
    def trace(array):
        field = gp.ScalarField(array)
        seen.append(field._repr_html_())
        return field + 1

    trace(np.zeros((2, 3), "f"))
    assert "field 2×3 float32" in seen[0] and "has no values yet" in seen[0]


def test_every_type_is_shown(device):
    for dtype in (
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
    ):
        for shape in ((7,), (4, 5), (2, 3, 4)):
            for order in (0, 1, 2):
                field = gp.Field(np.ones(shape, dtype), min(order, len(shape)))
                assert field._repr_html_()


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "data:image/png" in gp.ScalarField(image(3, 4))._repr_html_()


def test_pictures_of_extremes():
    most = np.full((2, 2), np.finfo("f8").max)
    most[0] *= -1
    (shown_most,) = pictures(most, gp.FieldType((2, 2), dtype="float64"))
    assert shown_most.pixels[:, 0, 0].tolist() == [0, 255]
    assert gp.VectorField(most)._repr_html_() and gp.MatrixField(np.tile(most, (5, 5, 3, 3)))._repr_html_()


def test_source_is_text_with_marked_comments():
    text = gamma.source(gp.FieldType((4, 5)), target="opencl")
    assert isinstance(text, str) and text == str(text)
    html = text._repr_html_()
    assert html.startswith("<pre>") and ">// gamma</span>" in html and "&lt;" in html


def test_a_state_says_where_its_values_are(device):
    with gp.ComputeGraph() as graph:
        heat = gp.ScalarField(image(3, 4))
        heat.next = heat + 1
        graph.probe(heat)
    graph.step(2)
    html = heat._repr_html_()
    assert "is a state of a ComputeGraph" in html and "graph.read" in html and "data:image/png" not in html
