"""Arguments against the inputSchema that a server gives its tool."""
