"""Recorder: the calls of a kernel body become statements."""
