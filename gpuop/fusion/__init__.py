"""Planning: which operators become one kernel, and what goes through memory."""
