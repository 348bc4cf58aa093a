"""A plan as a picture: kernels with the operators fused into them, sources and sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuop.engine.show.kernels import BLUE, GREY, LARGE, SMALL, KernelPicture, draw_kernel
from gpuop.engine.show.layered_layout import Edge, layered
from gpuop.engine.show.scene import Box, Curve, Label, Scene, text_width
from gpuop.fusion.cost import amount
from gpuop.fusion.plan import Plan

MARGIN, GAP_X, GAP_Y = 20.0, 26.0, 52.0
LANE = 6.0  # distance between the lines of the next values of two states
ENDS = {  # fill and stroke of sources and sinks
    "state": ("#e6f5ea", "#4c9a64"), "constant": ("#fdf6e3", "#c9a544"), "parameter": ("#fbeee6", "#d08a4e"),
    "sensor": ("#e5f6f7", "#3f9aa3"), "probe": ("#f3f4f6", "#7b8794"), "actuator": ("#e5f6f7", "#3f9aa3"),
}  # fmt: skip
MEMORY, APART, NEXT = "#52606d", "#d1495b", "#4c9a64"


@dataclass(frozen=True)
class Ends:
    """The sources and sinks of the values of a plan.

    Attributes:
        sources: the kind of each value that comes from outside, a key of ENDS.
        sinks: (value, kind of the sink, its name).
        nexts: (state, its next value).
        labels: the names of values.
    """

    sources: Mapping[int, str]
    sinks: Sequence[tuple[int, str, str]]
    nexts: Sequence[tuple[int, int]]
    labels: Mapping[int, str]


def draw_plan(plan: Plan, ends: Ends) -> Scene:
    """Draw the plan of a graph."""
    return _Drawing(plan, ends).scene


class _Drawing:
    """Boxes in the order sources, kernels, sinks."""

    def __init__(self, plan: Plan, ends: Ends) -> None:
        self.plan, self.ends, self.types = plan, ends, plan.program.types
        captions = {v: f"{ends.labels.get(v, '')} {amount(kind.nbytes)}".strip() for v, kind in self.types.items()}
        self.captions = captions
        read = [v for launch in plan.launches for v in launch.inputs] + [v for v, _, _ in ends.sinks]
        read += [v for _, v in ends.nexts]
        self.sources = [v for v in dict.fromkeys(read) if v in plan.program.leaves]
        self.kernels = [draw_kernel(plan, n, launch, captions) for n, launch in enumerate(plan.launches, 1)]
        self.made = {v: n for n, launch in enumerate(plan.launches) for v in launch.outputs}
        self.pictures = [
            *(self._end(ends.sources.get(v, "constant"), ends.labels.get(v, ""), v, "input") for v in self.sources),
            *self.kernels,
            *(self._end(what, name, v, "output") for v, what, name in ends.sinks),
        ]
        sizes = [(p.scene.width, p.scene.height) for p in self.pictures]
        self.edges = self._edges()
        self.layout = layered(sizes, [edge for edge, _, _ in self.edges], (GAP_X, GAP_Y))
        self.top = MARGIN + LANE * len(ends.nexts)
        self.scene = Scene(self.layout.width + 2 * MARGIN, self.layout.height + self.top + 2 * MARGIN)
        self._paint()
        self._next_values()
        self._legend()

    def _end(self, what: str, name: str, value: int, group: str) -> KernelPicture:
        """The box of a source or a sink: its name, kind and type."""
        fill, stroke = ENDS[what]
        kind = str(self.types[value])
        first, second = (name, f"{what}, {kind}") if name else (what, kind)
        width = 20 + max(text_width(first, LARGE), text_width(second, SMALL))
        scene = Scene(width, 36)
        tip = f"{what} {name}: {kind}, {amount(self.types[value].nbytes)}"
        scene.items = [
            Box(0, 0, width, 36, fill, stroke, 16, tip=tip, group=group),
            Label(width / 2, 15, first, LARGE, anchor="middle"),
            Label(width / 2, 28, second, SMALL, GREY, "middle"),
        ]
        return KernelPicture(scene, {value: width / 2}, {value: width / 2})

    def _maker(self, value: int) -> int:
        return self.sources.index(value) if value in self.sources else len(self.sources) + self.made[value]

    def _edges(self) -> list[tuple[Edge, int, str]]:
        """Edges with their values, and the reasons why their ends were not fused."""
        home = {op.number: n for n, launch in enumerate(self.plan.launches) for op in launch.ops}
        reasons: dict[tuple[int, int | None], str] = {}
        for a in self.plan.apart:
            known = reasons.get((a.value, home.get(a.consumer.number)))
            reasons[a.value, home.get(a.consumer.number)] = f"{known}; {a.reason}" if known else a.reason
        targets = [(v, len(self.sources) + n, n) for n, launch in enumerate(self.plan.launches) for v in launch.inputs]
        first = len(self.sources) + len(self.kernels)
        targets += [(v, first + k, -1) for k, (v, _, _) in enumerate(self.ends.sinks)]
        edges = []
        for value, target, kernel in targets:
            source = self._maker(value)
            leaves, enters = self.pictures[source].outputs[value], self.pictures[target].inputs[value]
            why = reasons.get((value, kernel), "") if value in self.made else ""
            edges.append((Edge(source, target, leaves, enters), value, why))
        return edges

    def _paint(self) -> None:
        labelled: set[int] = set()
        for (_, value, why), route in zip(self.edges, self.layout.routes, strict=True):
            points = tuple((x + MARGIN, y + self.top) for x, y in route)
            tip = f"{self.ends.labels.get(value, '')} {self.types[value]}, {amount(self.types[value].nbytes)}".strip()
            self.scene.items.append(Curve(points, APART if why else MEMORY, tip=f"{tip}: {why}" if why else tip))
        for (_, value, why), route in zip(self.edges, self.layout.routes, strict=True):
            if value not in labelled:
                labelled.add(value)
                text = self.captions[value] if value in self.made else amount(self.types[value].nbytes)
                (x, y), left = route[0], route[2][0] > route[0][0]  # on the side that the line does not bend to
                x += MARGIN + (-4 if left else 4)
                color, anchor = APART if why else MEMORY, "end" if left else "start"
                self.scene.items.append(Label(x, y + self.top + 13, text, SMALL, color, anchor))
        for node, picture in zip(self.layout.boxes, self.pictures, strict=True):
            self.scene.move(node.x + MARGIN, node.y + self.top, picture.scene)

    def _next_values(self) -> None:
        """Dashed lines from next values back to their states, around everything."""
        lanes = [(state, value) for state, value in self.ends.nexts if state in self.sources]
        for lane, (state, value) in enumerate(lanes, 1):
            maker, box = self.layout.boxes[self._maker(value)], self.layout.boxes[self._maker(state)]
            x0 = maker.x + self.pictures[self._maker(value)].outputs[value] + MARGIN
            x1, right = box.x + box.width / 2 + MARGIN, self.layout.width + 1.5 * MARGIN + LANE * lane
            low, high = self.layout.bands[maker.row][1] + self.top, self.layout.bands[box.row][0] + self.top
            down, up = low + 20 + LANE * (lane % 4), high - 4 - LANE * (1 + lane % 4)
            points = ((x0, maker.y + maker.height + self.top), (x0, down), (right, down), (right, up), (x1, up))
            name = self.ends.labels.get(state, "state")
            tip = f"{name}.next: taken at the next step"
            self.scene.items.append(Curve((*points, (x1, box.y + self.top)), NEXT, dashed=True, smooth=False, tip=tip))
        self.scene.width += LANE * len(lanes)

    def _legend(self) -> None:
        """Draw the legend, with the kinds of lines that occur."""
        kinds = [("in registers", BLUE, False, any(len(launch.ops) > 1 for launch in self.plan.launches))]
        kinds.append(("through memory", MEMORY, False, bool(self.edges)))
        kinds.append(("could not be fused", APART, False, any(why for _, _, why in self.edges)))
        kinds.append(("at the next step", NEXT, True, bool(self.ends.nexts)))
        x, y = MARGIN, self.scene.height
        for text, stroke, dashed, there in kinds:
            if there:
                self.scene.items.append(Curve(((x, y), (x + 24, y)), stroke, 1.6, dashed, False, False))
                self.scene.items.append(Label(x + 30, y + 3.5, text, SMALL + 0.5, GREY))
                x += 46 + text_width(text, SMALL + 0.5)
        self.scene.width = max(self.scene.width, x)
        self.scene.height += MARGIN
