"""A stdio MCP server whose work is done by a remote one: lines here, Streamable HTTP there."""
