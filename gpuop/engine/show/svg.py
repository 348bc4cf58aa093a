"""A scene as SVG."""

from __future__ import annotations

import re
from html import escape

from gpuop.engine.show.scene import Box, Curve, Item, Label, Scene

FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
ARROW = 7.0  # the length of an arrow head


def svg(scene: Scene) -> str:
    """The text of an SVG file."""
    width, height = f"{scene.width:.0f}", f"{scene.height:.0f}"
    space = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
    head = f'<svg {space} width="{width}" height="{height}" font-family="{FONT}">'
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return printable("\n".join([head, ground, *map(_item, scene.items), "</svg>\n"]))


UNPRINTABLE = re.compile("[^\\t\\n\\r -\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")  # characters that XML forbids


def printable(text: str) -> str:
    """A name whose characters that XML forbids, such as NUL and lone surrogates, are replaced."""
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _item(item: Item) -> str:
    match item:
        case Box():
            return _box(item)
        case Label():
            weight = ' font-weight="600"' if item.bold else ""
            return (
                f'<text x="{item.x:.1f}" y="{item.y:.1f}" font-size="{item.size:g}" fill="{item.fill}" '
                f'text-anchor="{item.anchor}"{weight}>{escape(item.text, quote=False)}</text>'
            )
        case Curve():
            return _curve(item)


def _box(box: Box) -> str:
    dash = ' stroke-dasharray="4 3"' if box.dashed else ""
    kind = f' class="{escape(box.group)}"' if box.group else ""
    shape = (
        f'<rect{kind} x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{box.radius:g}" fill="{box.fill}" stroke="{box.stroke}"{dash}'
    )
    return shape + (f"><title>{escape(box.tip, quote=False)}</title></rect>" if box.tip else "/>")


def _curve(curve: Curve) -> str:
    segments = curve.segments()
    if not segments:
        return ""
    path = [f"M{segments[0][0][0]:.1f} {segments[0][0][1]:.1f}"]
    path += [f"C{b[0]:.1f} {b[1]:.1f} {c[0]:.1f} {c[1]:.1f} {d[0]:.1f} {d[1]:.1f}" for _, b, c, d in segments]
    dash = ' stroke-dasharray="5 4"' if curve.dashed else ""
    lines = [f'<path d="{" ".join(path)}" fill="none" stroke="{curve.stroke}" stroke-width="{curve.width:g}"{dash}/>']
    if curve.arrow:
        x, y = segments[-1][3]
        tip = f"{x:.1f},{y:.1f} {x - 3.5:.1f},{y - ARROW:.1f} {x + 3.5:.1f},{y - ARROW:.1f}"
        lines.append(f'<polygon points="{tip}" fill="{curve.stroke}"/>')
    title = f"<title>{escape(curve.tip, quote=False)}</title>" if curve.tip else ""
    return f"<g>{title}{''.join(lines)}</g>"
