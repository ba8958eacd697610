"""Tools for the kit's own engineers: run by hand, and asserted by a test where that can be."""
