"""Directories that strangers fill: walked, measured, taken away."""
