"""The command line: a file for each command, which loads only the modules of that command."""
