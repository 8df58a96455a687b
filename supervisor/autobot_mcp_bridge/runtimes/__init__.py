"""How a server's process is provided: each runtime turns a definition into a channel's two pipes."""
