"""Files in, checked records out."""
