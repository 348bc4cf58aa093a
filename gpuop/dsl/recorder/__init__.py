"""What turns the calls of a kernel body into statements."""
