"""TODO sandbox."""
