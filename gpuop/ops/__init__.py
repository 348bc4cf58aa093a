"""Host algebra and the NumPy functions of fields; `gpuop/dsl/fields/services.py` maps what fields ask for to these modules."""
