"""A server with one tool, `run`, which has a shell do something and tells what came of it.

It shows what a server can see and do where it is put.
"""

import subprocess

from stdio import error, initialize_result, messages, result, text, tool

WITHIN = 50.0  # seconds for one script, below timeouts.call


def run(script: str) -> dict[str, object]:
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=WITHIN,
        check=False,
    )
    return {"status": done.returncode, "out": done.stdout, "err": done.stderr}


def main() -> None:
    for message in messages():
        match message.get("method"):
            case "initialize":
                result(message["id"], initialize_result(message, {"tools": {}}))
            case "tools/list":
                result(message["id"], {"tools": [tool("run", script="string")]})
            case "tools/call":
                text(message["id"], run(message["params"]["arguments"]["script"]))
            case method if "id" in message:
                error(message["id"], -32601, f"no method {method}")


if __name__ == "__main__":
    main()
