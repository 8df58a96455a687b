"""What is watched while servers run: the failure breaker, configuration changes."""
