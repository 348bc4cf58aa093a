"""Collective operations of work-groups: lowered to barriers, local memory and the shuffles of a target."""
