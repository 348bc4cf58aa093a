"""Graphs that step: states, sensors and actuators, evaluated on a device again and again.

Begin at `compute_graph.py`: a `ComputeGraph` collects what its `with` defines (`definition.py`), and plans it when it first runs.
From then on a `Stepper` (`stepper.py`) takes the steps, on a `BoundGraph` (`bound_graph.py`) that has the buffers and the bound
launches, and makes steps atomic under interrupts. `sensors.py` has the inputs and outputs of each step.
"""
