"""Host algebra, and NumPy's functions: `gpuop/dsl/fields/services.py` says which module has what fields ask for."""
