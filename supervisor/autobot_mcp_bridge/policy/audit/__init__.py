"""One line for each call, in a chain that tells of changes; and what may stand in it."""
