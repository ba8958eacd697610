"""TODO inspection."""
