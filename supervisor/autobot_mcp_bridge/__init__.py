"""autobot-mcp-bridge: every MCP server a supervised service behind one small HTTP proxy."""

__version__ = "0.1.0"
