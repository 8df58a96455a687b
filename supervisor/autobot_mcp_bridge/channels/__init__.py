"""JSON-RPC lines: framing, multiplexing, deadlines, and the state machine of each server."""
