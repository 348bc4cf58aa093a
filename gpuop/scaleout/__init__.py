"""Fields larger than a device or a machine: streams, Dask, MPI."""
