"""Reading what MCP clients have configured: documents in, definitions and secrets out."""
