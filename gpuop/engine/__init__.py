"""Evaluation of fields: pipelines, graphs, iteration, bundles, tuning, pictures and the command line."""
