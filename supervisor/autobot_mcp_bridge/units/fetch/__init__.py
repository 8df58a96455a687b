"""Installing for root in a sandboxed unit: what is asked, done, and taken into the store."""
