"""Pipelines on arrays that are larger than memory, window by window, in one process."""
