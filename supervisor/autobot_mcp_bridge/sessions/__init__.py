"""MCP conversations: eras, the session table, id mapping, event streams."""
