"""The words of kernel bodies, each recorded by a function here."""
