"""What the languages share: a kernel as text of C, and what a language may differ in."""
