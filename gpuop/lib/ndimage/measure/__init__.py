"""Labels, measurements of labelled regions, watershed."""
