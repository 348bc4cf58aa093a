"""The command line: a file for what each command does, and nothing that only others need is loaded."""
