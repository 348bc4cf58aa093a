"""The pipelines that gpuop is measured by, beside what others make of them: `python -m benchmarks.pipelines.run --help`."""
