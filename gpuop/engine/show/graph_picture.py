"""A plan as a picture: boxes of kernels around those of the operators that are fused into them, sources and sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from gpuop.base.records import dataclass
from gpuop.engine.show.layered_layout import Edge, LayeredLayout, layered
from gpuop.engine.show.scene import Box, Curve, Label, Scene, text_width
from gpuop.fusion.cost import amount
from gpuop.fusion.iteration import Iteration, Reversal
from gpuop.fusion.launch import PlannedLaunch
from gpuop.fusion.plan import Plan
from gpuop.fusion.program import Op
from gpuop.fusion.report.plan_report import recomputed
from gpuop.ir.kernel import Launchable

PAD, TITLE = 12.0, 42.0  # around the operators, and above them
OPERATOR = 34.0  # the height of a box with two lines
LARGE, SMALL = 12.0, 9.5  # text sizes
GREY, BLUE, PURPLE = "#667788", "#5b8fc7", "#8a63b8"
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
        self.launches = {v: n for n, launch in enumerate(plan.launches) for v in launch.outputs}
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
        return self.sources.index(value) if value in self.sources else len(self.sources) + self.launches[value]

    def _edges(self) -> list[tuple[Edge, int, str]]:
        """Edges with their values, and the reasons why their ends were not fused."""
        home = {op.number: n for n, launch in enumerate(self.plan.launches) for op in launch.ops}
        reasons: dict[tuple[int, int | None], str] = {}
        for a in self.plan.apart:
            earlier = reasons.get((a.value, home.get(a.consumer.number)))
            reasons[a.value, home.get(a.consumer.number)] = f"{earlier}; {a.reason}" if earlier else a.reason
        targets = [(v, len(self.sources) + n, n) for n, launch in enumerate(self.plan.launches) for v in launch.inputs]
        first = len(self.sources) + len(self.kernels)
        targets += [(v, first + k, -1) for k, (v, _, _) in enumerate(self.ends.sinks)]
        edges = []
        for value, target, kernel in targets:
            source = self._maker(value)
            leaves, enters = self.pictures[source].outputs[value], self.pictures[target].inputs[value]
            why = reasons.get((value, kernel), "") if value in self.launches else ""
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
                text = self.captions[value] if value in self.launches else amount(self.types[value].nbytes)
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


@dataclass
class KernelPicture:
    """The box of a kernel; `inputs` and `outputs` are the x of values that enter at the top and leave at the bottom."""

    scene: Scene
    inputs: dict[int, float] = field(default_factory=dict)
    outputs: dict[int, float] = field(default_factory=dict)


class _Content:
    """The contents of a kernel, as numbered boxes: operators, then inputs, then outputs."""

    def __init__(self, plan: Plan, launch: PlannedLaunch, captions: Mapping[int, str]) -> None:
        self.originals = {op.number: op for op in plan.program.ops}
        self.ops = sorted(
            {op.number: op for op in (*recomputed(launch), *launch.ops)}.values(), key=lambda op: op.number
        )
        self.own = {op.number for op in launch.ops}
        self.launch, self.captions = launch, captions
        self.box = {op.number: k for k, op in enumerate(self.ops)}
        self.port = {v: len(self.ops) + k for k, v in enumerate(launch.inputs)}
        self.exit = {v: len(self.ops) + len(launch.inputs) + k for k, v in enumerate(launch.outputs)}
        self.maker = {v: op for op in self.ops for v in self.originals[op.number].outputs}

    def sizes(self) -> list[tuple[float, float]]:
        boxes = [
            (20 + max(text_width(op.kernel.name, LARGE), text_width(self.place(op), SMALL)), OPERATOR)
            for op in self.ops
        ]
        return [
            *boxes,
            *((PAD, 0.0) for _ in self.launch.inputs),
            *((text_width(self.captions[v], SMALL) + PAD, 0.0) for v in self.launch.outputs),
        ]

    def place(self, op: Op) -> str:
        line = f"{op.loc.path.replace(chr(92), '/').rpartition('/')[2]}:{op.loc.line}" if op.loc is not None else ""
        return line if op.number in self.own else ", ".join(filter(None, ("recomputed", line)))

    def edges(self, sizes: list[tuple[float, float]]) -> list[tuple[Edge, int]]:
        """Edges between boxes, each with its value."""
        lines: dict[tuple[int, int, int], None] = {}  # source, target, value
        for op in self.ops:
            for value in self.originals[op.number].inputs:
                if value in self.maker:
                    lines[self.box[self.maker[value].number], self.box[op.number], value] = None
                elif value in self.port:
                    lines[self.port[value], self.box[op.number], value] = None
        for value in self.port.keys() - {v for source, _, v in lines if source in self.port.values()}:
            reader = next(op for op in self.launch.ops if value in op.inputs)
            lines[self.port[value], self.box[reader.number], value] = None
        for value, port in self.exit.items():
            lines[self.box[self.maker[value].number], port, value] = None
        return [(self._edge(*ends, sizes, list(lines)), ends[2]) for ends in lines]

    def _edge(
        self, source: int, target: int, value: int, sizes: list[tuple[float, float]], edges: list[tuple[int, int, int]]
    ) -> Edge:
        """An edge; its ends are spread along the boxes by output and by input."""
        values = list(dict.fromkeys(v for s, _, v in edges if s == source))
        read = [(s, v) for s, t, v in edges if t == target]
        leaves = sizes[source][0] * (values.index(value) + 1) / (len(values) + 1)
        return Edge(source, target, leaves, sizes[target][0] * (read.index((source, value)) + 1) / (len(read) + 1))


def draw_kernel(plan: Plan, number: int, launch: PlannedLaunch, captions: Mapping[int, str]) -> KernelPicture:
    """A kernel's picture, at (0, 0).

    Args:
        captions: the labels of values that leave.
    """
    content = _Content(plan, launch, captions)
    sizes = content.sizes()
    edges = content.edges(sizes)
    layout = layered(sizes, [e for e, _ in edges], (14, 26), list(content.port.values()), list(content.exit.values()))
    picture = KernelPicture(Scene())
    left = _frame(picture.scene, plan, number, launch, layout)
    _fill(picture.scene, plan, content, layout, [v for _, v in edges], left)
    for ports, places in ((content.port, picture.inputs), (content.exit, picture.outputs)):
        places.update({v: left + layout.boxes[k].x + sizes[k][0] / 2 for v, k in ports.items()})
    return picture


def _frame(scene: Scene, plan: Plan, number: int, launch: PlannedLaunch, layout: LayeredLayout) -> float:
    """Draw the rounded box with its title; return the x of the left side of its contents."""
    types = plan.program.types
    read, written = (amount(sum(types[v].nbytes for v in side)) for side in (launch.inputs, launch.outputs))
    name = f"{number}  {launch.kernel.name}"
    facts = f"{_how(launch.kernel, plan)}, reads {read}, writes {written}"
    inner = max(layout.width, text_width(name, LARGE + 1), text_width(facts, SMALL))
    scene.width, scene.height = inner + 2 * PAD, TITLE + layout.height
    fill, stroke = ("#f5eefc", PURPLE) if launch.kernel.unfusible else ("#eaf2fb", BLUE)
    tip = f"kernel {number}: {launch.kernel.name}, {facts}"
    scene.items.append(Box(0, 0, scene.width, scene.height, fill, stroke, 10, tip=tip, group="kernel"))
    scene.items.append(Label(PAD, 18, name, LARGE + 1, bold=True))
    scene.items.append(Label(PAD, 32, facts, SMALL, GREY))
    return PAD + (inner - layout.width) / 2


def _how(kernel: Launchable, plan: Plan) -> str:
    """The place and the repetitions of a kernel, as text."""
    if isinstance(kernel, Reversal):
        return f"back through {_how(kernel.forward, plan)}"
    if isinstance(kernel, Iteration):
        inner = ", ".join(launch.kernel.name for launch in kernel.turn.plan(plan.limits).launches)
        iterations = f"{kernel.times} iterations of {inner}"
        return iterations if kernel.until is None else f"iterations of {inner} until a condition holds"
    return kernel.where or f"{kernel.grid} threads"


def _fill(scene: Scene, plan: Plan, content: _Content, layout: LayeredLayout, passed: list[int], left: float) -> None:
    stroke = PURPLE if content.launch.kernel.unfusible else BLUE
    top = TITLE
    for route, value in zip(layout.routes, passed, strict=True):
        kind = plan.program.types[value]
        tip = f"{plan.program.names.get(value, '')} {kind}, {amount(kind.nbytes)}".strip()
        into = route[-1][1] < layout.height  # an operator, not the lower side
        scene.items.append(
            Curve(
                tuple((x + left, y + top) for x, y in route), stroke, 1.2, arrow=into, tip=f"{tip}, in registers" * into
            )
        )
    for op, node in zip(content.ops, layout.boxes, strict=False):
        x, y, dashed = node.x + left, node.y + top, op.number not in content.own
        at = f" at {op.loc}" if op.loc is not None else ""
        tip = f"{op.kernel.name}{at}" + ", computed again wherever it is read" * dashed
        scene.items.append(Box(x, y, node.width, node.height, "#ffffff", stroke, 5, dashed, tip, "operator"))
        scene.items.append(Label(x + node.width / 2, y + 15, op.kernel.name, LARGE, anchor="middle"))
        scene.items.append(Label(x + node.width / 2, y + 28, content.place(op), SMALL, GREY, "middle"))
