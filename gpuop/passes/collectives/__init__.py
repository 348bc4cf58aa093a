"""What the threads of a work-group compute of one another's values, made of barriers, local memory and a target's shuffles."""
