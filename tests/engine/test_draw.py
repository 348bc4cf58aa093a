"""Pictures of graphs: complete, well-formed, and nothing lies on anything else."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest
from PIL import Image, ImageFont

import gpuop as gp
from gpuop.engine.show.raster import PLAIN
from gpuop.engine.show.scene import Box, Curve, Label, text_width
from tests.harness import blur, gamma, graph_of, half_and_double, image, matrix, rng, shift, tone

SVG = "{http://www.w3.org/2000/svg}"


def one():
    return graph_of(lambda: {"out": gamma(gp.ScalarField(image(64, 96)))})


def ten():
    rate = gp.Parameter(0.5)
    with gp.ComputeGraph() as graph:
        frame = gp.VectorField(image(48, 64, 3))
        background = gp.VectorField(np.zeros((48, 64, 3), "f"))
        background.next = background + rate * (frame - background)
        smooth = blur(blur(blur(abs(frame - background))))
        low, high = half_and_double(smooth)
        graph.probe(tone(matrix(high)), "high")
        graph.probe(low)
        graph.probe(shift(np.sqrt(smooth)))
        count = gp.ScalarField(np.int32(0))
        count.next = count + 1
        graph.probe(count, "<count>")
    return graph


def hundred():
    with gp.ComputeGraph() as graph:
        fields = [gp.ScalarField(image(20, 30)) for _ in range(4)]
        for k in range(100):
            a, b = (fields[i] for i in rng.integers(max(0, len(fields) - 9), len(fields), 2))
            makers = (lambda a, b: a + b, lambda a, b: np.sqrt(a), lambda a, b: shift(a) * b, lambda a, b: blur(a * b))
            fields.append(makers[k % 4](a, b))
        for field in fields[-6:]:
            graph.probe(field)
    return graph


def host():
    a = gp.ScalarField(image(6, 9))
    return graph_of(lambda: {"out": gp.HostOperator(np.flipud, a + 1, outputs=a.type) * 2})


def iteration():
    a = gp.ScalarField(image(6, 9))
    return graph_of(lambda: {"out": gp.iterate(blur, a + 1, until=lambda u: u.max() < 0, times=8, every=4) * 2})


def empty():
    return graph_of(lambda: {"out": gp.ScalarField(image(2, 3))})


graphs = pytest.mark.parametrize("make", [one, ten, hundred, host, iteration, empty])


def boxes(scene, *groups):
    return [item for item in scene.items if isinstance(item, Box) and item.group in groups]


def inside(inner, outer):
    return (
        outer.x <= inner.x
        and inner.x + inner.width <= outer.x + outer.width + 1e-6
        and outer.y <= inner.y
        and inner.y + inner.height <= outer.y + outer.height + 1e-6
    )


def apart(a, b):
    beside = a.x + a.width <= b.x or b.x + b.width <= a.x
    return beside or a.y + a.height <= b.y or b.y + b.height <= a.y


@graphs
def test_svg_is_complete(make, tmp_path):
    graph, path = make(), tmp_path / "graph.svg"
    graph.draw(path)
    root = ET.parse(path).getroot()
    kinds = [rect.get("class") for rect in root.iter(f"{SVG}rect")]
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert kinds.count("kernel") == len(graph.plan.launches)
    assert kinds.count("output") == len(graph._definition.probes)
    for n, step in enumerate(graph.plan.launches, 1):
        assert f"{n}  {step.kernel.name}" in texts
        for op in step.ops:
            assert op.kernel.name in texts and any(op.loc.path.endswith(t.split(":")[0]) for t in texts if ":" in t)
    for name in graph._definition.probes:
        assert name in texts
    tips = "".join(title.text for title in root.iter(f"{SVG}title"))
    readers = {op.number: step for step in graph.plan.launches for op in step.ops}
    for left in graph.plan.apart:
        if left.value in left.producer.outputs and left.value in readers[left.consumer.number].inputs:
            assert left.reason in tips


@graphs
def test_nothing_lies_on_anything_else(make):
    scene = make()._scene()
    kernels, operators, ends = boxes(scene, "kernel"), boxes(scene, "operator"), boxes(scene, "input", "output")
    for a, b in combinations([*kernels, *ends], 2):
        assert apart(a, b), (a, b)
    for a, b in combinations(operators, 2):
        assert apart(a, b), (a, b)
    for operator in operators:
        assert sum(inside(operator, kernel) for kernel in kernels) == 1
    picture = Box(0, 0, scene.width, scene.height, "", "")
    assert all(inside(box, picture) for box in boxes(scene, "kernel", "operator", "input", "output"))
    for curve in scene.items:
        if isinstance(curve, Curve):
            assert all(0 <= x <= scene.width and 0 <= y <= scene.height for x, y in curve.points)
            passed = [(x, y) for x, y in curve.points[1:-1]]
            assert not any(
                b.x < x < b.x + b.width and b.y < y < b.y + b.height for x, y in passed for b in [*operators, *ends]
            )


@graphs
def test_text_keeps_within_its_box(make):
    """In the order of drawing the texts of a box follow it."""
    scene, box = make()._scene(), None
    for item in scene.items:
        if isinstance(item, Box):
            box = item
        elif isinstance(item, Label) and box is not None and item.y < box.y + box.height and item.anchor == "middle":
            width = text_width(item.text, item.size)
            assert box.x <= item.x - width / 2 and item.x + width / 2 <= box.x + box.width, item
            assert box.y < item.y - 0.7 * item.size and item.y < box.y + box.height


def test_text_is_not_wider_than_reckoned():
    font = ImageFont.load_default(100)
    for text in (
        "subtract_absolute_blur_and_2_more",
        "WMwm@%",
        "480×640 float32[3]",
        "iljt.:() I",
        "ABCXYZ",
        "tests.py:1234",
    ):
        assert font.getlength(text.translate(PLAIN)) <= text_width(text, 100)


def test_states_next_values_are_dashed():
    scene = ten()._scene()
    back = [item for item in scene.items if isinstance(item, Curve) and item.dashed and item.tip]
    assert sorted(curve.tip for curve in back) == [
        "background.next: taken at the next step",
        "count.next: taken at the next step",
    ]
    for curve in back:
        assert curve.points[0][1] > curve.points[-1][1], "upwards"


def test_a_state_that_takes_another(tmp_path):
    with gp.ComputeGraph() as graph:
        a, b = gp.ScalarField(image(3, 4)), gp.ScalarField(image(3, 4))
        a.next, b.next = b, a
        graph.probe(a, "a")
    graph.draw(tmp_path / "swap.svg")
    assert "b.next: taken at the next step" in (tmp_path / "swap.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("make", [one, ten])
def test_png(make, tmp_path):
    graph = make()
    graph.draw(str(tmp_path / "graph.PNG"))
    scene = graph._scene()
    with Image.open(tmp_path / "graph.PNG") as picture:
        assert picture.format == "PNG" and picture.size == (round(2 * scene.width), round(2 * scene.height))
        assert np.asarray(picture.convert("L")).std() > 5


def test_drawing_is_deterministic(tmp_path):
    for name in ("a.svg", "b.svg"):
        ten().draw(tmp_path / name)
    first, second = ((tmp_path / name).read_text(encoding="utf-8") for name in ("a.svg", "b.svg"))
    assert first == second


def test_a_notebook_shows_the_drawing():
    html = ten()._repr_html_()
    assert html.startswith('<div style="overflow: auto"><svg ') and html.endswith("</svg>\n</div>")
    with gp.ComputeGraph() as graph:
        assert graph._repr_html_() is None, "it has no plan yet"


@pytest.mark.parametrize("name", ["graph.pdf", "graph", "graph.jpeg"])
def test_other_endings(name, tmp_path):
    with pytest.raises(gp.SemanticError, match=rf"draw writes \.svg and \.png files, not '{name}'; name the file so"):
        one().draw(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_without_pillow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(gp.SemanticError, match=r"needs Pillow, which is not installed: `pip install pillow`"):
        one().draw(tmp_path / "graph.png")
    one().draw(tmp_path / "graph.svg")


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b", "\udfff", "a\x1b\ufffeb"])
def test_pictures_of_odd_names(tmp_path, name):
    """They are written, and the text is what XML may have."""
    with gp.ComputeGraph(device="reference") as graph:
        graph.probe(gp.ScalarField(image(4, 5)) + 1, name)
    for suffix in ("svg", "png"):
        graph.draw(tmp_path / f"graph.{suffix}")
    ET.fromstring((tmp_path / "graph.svg").read_text(encoding="utf-8"))
