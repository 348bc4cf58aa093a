"""A kernel of a plan as a picture: its operators, and the ports of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuop.engine.show.layered_layout import Edge, LayeredLayout, layered
from gpuop.engine.show.scene import Box, Curve, Label, Scene, text_width
from gpuop.fusion.cost import amount
from gpuop.fusion.iteration import Iteration
from gpuop.fusion.launch import PlannedLaunch
from gpuop.fusion.plan import Plan
from gpuop.fusion.program import Op
from gpuop.fusion.report.plan_report import recomputed
from gpuop.ir.kernel import Launchable

PAD, TITLE = 12.0, 42.0  # around the operators, and above them
OPERATOR = 34.0  # the height of a box with two lines
LARGE, SMALL = 12.0, 9.5  # text sizes
GREY, BLUE, PURPLE = "#667788", "#5b8fc7", "#8a63b8"


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
        wanted: dict[tuple[int, int, int], None] = {}  # source, target, value
        for op in self.ops:
            for value in self.originals[op.number].inputs:
                if value in self.maker:
                    wanted[self.box[self.maker[value].number], self.box[op.number], value] = None
                elif value in self.port:
                    wanted[self.port[value], self.box[op.number], value] = None
        for value in self.port.keys() - {v for source, _, v in wanted if source in self.port.values()}:
            reader = next(op for op in self.launch.ops if value in op.inputs)
            wanted[self.port[value], self.box[reader.number], value] = None
        for value, port in self.exit.items():
            wanted[self.box[self.maker[value].number], port, value] = None
        return [(self._edge(*ends, sizes, list(wanted)), ends[2]) for ends in wanted]

    def _edge(
        self, source: int, target: int, value: int, sizes: list[tuple[float, float]], edges: list[tuple[int, int, int]]
    ) -> Edge:
        """An edge; its ends are spread along the boxes by output and by input."""
        made = list(dict.fromkeys(v for s, _, v in edges if s == source))
        read = [(s, v) for s, t, v in edges if t == target]
        leaves = sizes[source][0] * (made.index(value) + 1) / (len(made) + 1)
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
