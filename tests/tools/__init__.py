"""Tools for the kit's own engineers: what is run by hand, and asserted by a test where it can be."""
