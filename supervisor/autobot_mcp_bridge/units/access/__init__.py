"""Who may read, reach and write what on this host."""
