"""Makes docs/gallery.png: what goes into the examples, and what comes out. The examples are on the path:

PYTHONPATH=examples python docs/make_gallery.py [--device opencl:0] [--output docs/gallery.png]
"""

import argparse
import sys
from pathlib import Path

import background_subtraction
import cielab
import common
import demo
import equalize
import game_of_life
import harris
import numpy as np
import stream
import unsharp
import upside_down
from PIL import Image
from skimage import data

import gpuop as gp

TILE = 232


def cut(picture, top=None, left=None, size=None):
    """A square of the picture, its middle by default, as a tile."""
    rows, columns = picture.shape[:2]
    size = size or min(rows, columns)
    top = (rows - size) // 2 if top is None else top
    left = (columns - size) // 2 if left is None else left
    square = Image.fromarray(common.as_rgb(picture)[top : top + size, left : left + size])
    return np.asarray(square.resize((TILE, TILE), Image.Resampling.LANCZOS))


def tiles():
    """Caption and picture of each tile, four to a row."""
    astronaut, cat, cup, rocket = data.astronaut(), data.chelsea(), data.coffee(), data.rocket()
    cameraman = common.as_rgb(data.camera())
    yield "demo: photo", cut(astronaut)
    yield "graded, 1 kernel", cut(demo.grade(astronaut, 1.05).read("graded"))
    yield "upside_down: photo", cut(cup)
    yield "turned", cut(upside_down.turn(cup).read("flipped"))

    lab = cielab.panels(astronaut, cielab.convert(astronaut).read("Lab"))
    yield from zip(("cielab: photo", "L", "a", "b"), map(cut, lab.values()), strict=True)

    eyes = {"top": 50, "left": 115, "size": TILE}
    yield "unsharp: photo", cut(cat, **eyes)
    yield "sharpened", cut(unsharp.sharpen(np.float32(cat) / 255, 3, 1.5).read("sharp"), **eyes)
    camera = {"top": 150, "left": 170, "size": 230}
    yield "harris: photo", cut(cameraman, **camera)
    corners = harris.strongest(harris.harris(common.grey(cameraman)).read("maxima"), 150)
    yield "corners", cut(harris.drawn(cameraman, corners), **camera)

    dark = common.to_bytes(common.grey(astronaut) / 2)
    bright = common.to_bytes(equalize.equalize(dark).read("equalized"))
    for captions, levels in ((("equalize: dark", "its levels"), dark), (("equalised", "its levels now"), bright)):
        counts = np.bincount(levels.ravel(), minlength=equalize.LEVELS)
        yield from zip(captions, (cut(levels), cut(equalize.chart(counts, (TILE, TILE)))), strict=True)

    graph = background_subtraction.subtraction(np.float32(rocket) / 255, background_subtraction.cat(107))
    graph.step(150)
    yield "motion: frame 150", cut(graph.read("frame"))
    yield "what moves", cut(graph.read("motion"))
    life = game_of_life.game(game_of_life.from_picture(astronaut))
    for caption, steps in (("game_of_life: start", 0), ("generation 50", 50)):
        life.step(steps)
        yield caption, cut(game_of_life.painted(life.read("cells"), life.read("trace")), 40, 100, TILE)

    watched = stream.watching(gp.FieldType((268, 419), 3, "uint8"), stream.wandering(cat), lambda strip: None)
    watched.step(40)
    captions = ("stream: frame 40", "its background", "what changes", "where it moves")
    yield from zip(captions, (cut(watched.read(k)) for k in ("frame", "background", "change", "colours")), strict=True)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", help="as `gpuop devices` lists them")
    parser.add_argument("--output", default="docs/gallery.png")
    args = parser.parse_args(argv)
    with gp.use_device(common.device(args.device)):
        page = Image.fromarray(common.sheet(dict(tiles()), columns=4))
    page.quantize(palette=page.quantize(256, kmeans=3), dither=Image.Dither.FLOYDSTEINBERG).save(
        args.output, optimize=True
    )
    print(f"picture: {args.output}, {Path(args.output).stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
