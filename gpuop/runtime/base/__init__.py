"""What every device is made of, and what devices share."""
