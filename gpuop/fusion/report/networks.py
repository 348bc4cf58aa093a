"""The compute graph for its users: operators before fusion, and kernels after, as graphs of networkx with plain attributes."""

from __future__ import annotations

from typing import Any

from gpuop.fusion.cross_thread import access_of
from gpuop.fusion.intermediates import footprints_of
from gpuop.fusion.plan import Plan
from gpuop.fusion.program import Network, Op, network_of
from gpuop.ir.analysis.footprints import Surrounding
from gpuop.ir.kernel import Launchable
from gpuop.ir.nodes import FieldParam

Reads = dict[str, Any]  # {"kind": "point" or "whole"}, or {"kind": "stencil", "low": offsets, "high": offsets}


def operators_of(plan: Plan, device: str) -> Network:
    """The graph that was fused.

    Returns:
        A networkx.DiGraph. Nodes are operators, by number, in the order in which they were recorded. Edges lead to the operators
        that read values of others. `ComputeGraph.operators` says what attributes both have.
    """
    import networkx as nx

    network, program = nx.DiGraph(), plan.program
    kernel = {op.number: n for n, launch in enumerate(plan.launches) for op in launch.ops}
    copies: dict[int, dict[int, None]] = {}
    for n, launch in enumerate(plan.launches):
        for op in launch.ops:
            for each in op.recomputed:
                copies.setdefault(each.number, {})[n] = None
    for number, op in program.network.nodes(data="operator"):
        kinds = [program.types[value] for value in op.outputs]
        network.add_node(
            number,
            name=op.kernel.name,
            shape=tuple(kinds[0].array_shape),
            dtype=kinds[0].dtype,
            device=_device(op.kernel, device),
            inputs=op.inputs,
            outputs=op.outputs,
            kernel=kernel.get(number),
            recomputed_in=tuple(copies.get(number, ())),
        )
    for maker, readers in program.network.adjacency():
        for reader, edge in readers.items():
            op, values = program.network.nodes[reader]["operator"], edge["values"]
            network.add_edge(maker, reader, values=values, reads={value: _reads(op, value) for value in values})
    return network


def kernels_of(plan: Plan, device: str) -> Network:
    """The operators as they read after fusion, where some compute for themselves what they read, condensed to kernels.

    Returns:
        A networkx.DiGraph whose nodes are kernels, from 0 on, in the order of launches; `ComputeGraph.network` says what
        attributes they and the edges have.
    """
    import networkx as nx

    fused = network_of([op for launch in plan.launches for op in launch.ops])
    network = nx.condensation(fused, [tuple(op.number for op in launch.ops) for launch in plan.launches])
    for n, launch in enumerate(plan.launches):
        names = [op.kernel.name for op in launch.ops]
        threads = str(launch.kernel.grid)
        network.add_node(
            n, name=launch.kernel.name, operators=names, threads=threads, device=_device(launch.kernel, device)
        )
    moved: dict[tuple[int, int], dict[int, None]] = {edge: {} for edge in network.edges}
    for maker, reader, values in fused.edges(data="values"):
        edge = network.graph["mapping"][maker], network.graph["mapping"][reader]
        if edge in moved:
            moved[edge] |= dict.fromkeys(values)
    nx.set_edge_attributes(network, {edge: tuple(sorted(values)) for edge, values in moved.items()}, "values")
    return network


def _device(kernel: Launchable, device: str) -> str:
    """The device of a kernel; Python functions run on the host, even those that get device arrays."""
    return "host" if kernel.where else device


def _reads(op: Op, value: int) -> Reads:
    """The points of a value that a thread of an operator reads."""
    if op.kernel.unfusible:
        return {"kind": "whole"}
    params = [param for param, v in zip(op.kernel.inputs, op.inputs, strict=True) if v == value]
    near = [_footprint(op, param) for param in params]
    whole = near[0]
    for each in near[1:]:
        whole = None if whole is None or each is None else whole.joined(each)
    if whole is None:
        return {"kind": "whole"}
    return {"kind": "point"} if whole.is_own else {"kind": "stencil", "low": whole.low, "high": whole.high}


def _footprint(op: Op, param: FieldParam) -> Surrounding | None:
    """The points that a thread reads of an input; None where these are not at constant distances from its own, or it is a number
    that all threads share.
    """
    shape = op.fusible.domain.shape
    if param.type.field_shape != shape:
        return None
    own = Surrounding((0,) * len(shape), (0,) * len(shape), frozenset())
    return own if param not in access_of(op).gathers else footprints_of(op).get(param)
