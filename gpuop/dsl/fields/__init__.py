"""Fields: lazy values of a graph, and what they share with arrays of other libraries."""
