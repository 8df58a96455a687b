"""The egress proxy: the only way out of servers with network mode names."""
