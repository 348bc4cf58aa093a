"""Pipelines on Dask arrays."""
