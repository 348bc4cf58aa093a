"""Reports of plans: text, data, counts and costs."""
