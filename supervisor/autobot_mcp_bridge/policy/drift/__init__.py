"""Tools that are not as they were accepted."""
