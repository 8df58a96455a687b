"""What must be on the host before a server can start: packages and resolved commands."""
