"""What stands in arguments and results: patterns that block, tell, or take out."""
