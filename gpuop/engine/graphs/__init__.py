"""Graphs that step: states, sensors and actuators, evaluated on a device again and again.

Begin at `compute_graph.py`: a `ComputeGraph` collects what is defined in its `with`, and plans it when it first runs. From then
on a `Stepper` (`stepper.py`) takes the steps, on a `BoundGraph` (`bound_graph.py`) that has the buffers and the bound launches.
`atomic_steps.py` says why a step that is interrupted is whole or has not been, and `sensors.py` what comes in and goes out.
"""
