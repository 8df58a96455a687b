"""Who may do what: tokens, Host and Origin, methods, tools."""
