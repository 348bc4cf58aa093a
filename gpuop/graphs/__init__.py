"""Stepping graphs: `compute_graph.py` is what users hold, `stepper.py` what a step is, `bound_graph.py` its launches."""
