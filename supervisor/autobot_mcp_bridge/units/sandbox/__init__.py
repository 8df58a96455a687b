"""What confines a server: pure decisions, and what this host makes of them."""
