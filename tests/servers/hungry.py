"""A server whose tool `eat` takes MiB of memory and keeps them; then it answers, or is asked not to."""

import json

import stdio

HELD: list[bytearray] = []

for message in stdio.messages():
    method = message.get("method")
    if method == "initialize":
        stdio.result(message["id"], stdio.initialize_result(message, {"tools": {}}))
    elif method == "tools/list":
        stdio.result(message["id"], {"tools": [stdio.tool("eat", mib="integer")]})
    elif method == "tools/call":
        # A bytearray of ones is resident, one of zeros would not be.
        HELD.extend(
            bytearray(b"\1" * (1 << 20)) for _ in range(message["params"]["arguments"]["mib"])
        )
        if message["params"]["arguments"].get("answer", True):
            stdio.text(message["id"], json.dumps(len(HELD)))
