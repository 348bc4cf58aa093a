"""Files: written whole or not at all; and what is kept in them between processes."""
