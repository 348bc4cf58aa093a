"""Cog's operators under Cog's names."""
