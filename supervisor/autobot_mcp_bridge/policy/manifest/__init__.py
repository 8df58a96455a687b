"""What an agent of some type may do: files in scoped-mcp's format, one per type."""
