"""TODO author."""
