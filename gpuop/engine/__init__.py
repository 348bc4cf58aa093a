"""What evaluates, iterates and tunes."""
