"""Random programs that have failed: on which device, of which kind, by which seed.

The suite runs them, and `make test-all` and `python -m tests.differential` name them in what they print of a failure. A seed is
another program when the generators change: the fault itself has a test of its own, where its kind is tested.
"""

FAILED: tuple[tuple[str, str, int], ...] = (
    ("opencl:0 as a gpu", "turns", 103),  # a DeviceOperator, where a driver of a CPU plans as for a GPU
    ("opencl:0 as a gpu", "graphs", 116),
    ("opencl:0 as a gpu", "kernels", 600013),  # lowering had no end: a bound that is NaN
    ("reference:sm_90 as a gpu", "blocks", 100253),  # a stage had loops and arrays of a later one
)
