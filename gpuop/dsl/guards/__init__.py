"""Guards: conditions under which a recorded kernel or a traced function may be used again."""
