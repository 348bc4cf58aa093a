"""Pictures and tables of plans and fields."""
