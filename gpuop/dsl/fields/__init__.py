"""Fields: lazy values of a graph, and their exchange with arrays of other libraries."""
