#!/bin/bash
# What the newcomer does: make run, paste every printed line, stop it, make test.
set -euo pipefail
cd "$HOME/autobot-mcp-bridge"
git init -q
git add -A
git -c user.name=newcomer -c user.email=newcomer@example.org commit -q -m "The checkout"

PORT=8765
READY_WITHIN=3000 # seconds for everything to be downloaded and installed
STOP_WITHIN=60
log=$HOME/run.log

cannot() { echo "$*"; exit 77; }
fail() { tail -n 40 "$log"; echo "FAIL: $*"; exit 1; }
(exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && cannot "port $PORT is taken on this host"

servers=$(python3 -c 'import json; print(len(json.load(open("examples/servers.json"))["servers"]))')
make run >"$log" 2>&1 &
make=$!

lines() { grep -c -E "^  $1" "$log" || true; }
end=$((SECONDS + READY_WITHIN))
until [ "$(lines 'curl ')" -eq "$servers" ]; do
    kill -0 "$make" 2>/dev/null || fail "make run ended"
    grep -q '^not installed' "$log" && fail "a package was not installed"
    [ "$SECONDS" -lt "$end" ] || fail "not ready after $READY_WITHIN s"
    sleep 1
done
echo "make run: ready after $SECONDS s"
grep -q 'not a sandbox' "$log" || fail "nothing says that the runtime is not a sandbox"

# An answer is a result without an error of the tool, as JSON or as the last event of a stream.
answered() {
    python3 -c '
import json, sys
text = sys.stdin.read()
events = [line[5:] for line in text.splitlines() if line.startswith("data:")]
result = json.loads(events[-1] if events else text)["result"]
assert result.get("isError") is not True and result["content"][0]["text"], result
print(result["content"][0]["text"][:100])'
}
count=0
while IFS= read -r line; do
    echo "\$ $line"
    bash -c "$line" | answered || fail "no answer: $line"
    count=$((count + 1))
done < <(grep -E '^  curl ' "$log")
[ "$count" -eq "$servers" ] || fail "$count curl lines for $servers servers"

count=0
while IFS= read -r line; do
    echo "\$ $line"
    answer=$(bash -c "$line") || fail "no answer: $line"
    [ -n "$answer" ] || fail "an empty answer: $line"
    echo "${answer:0:100}"
    count=$((count + 1))
done < <(grep -E '^  [^ ]*mcp-bridge call ' "$log")
[ "$count" -eq "$servers" ] || fail "$count call lines for $servers servers"
grep -q -F 'Hello, world!' <<<"$(bash -c "$(grep -E '^  [^ ]*mcp-bridge call .*hello' "$log" | head -1)")" ||
    fail "hello does not greet"

# Started by root, no server runs as root: the ones called just now still do.
if [ "$(id -u)" -eq 0 ]; then
    found=0
    for process in /proc/[0-9]*; do
        words=$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) || continue
        case $words in
            *"mcp-bridge demo"* | *server-everything* | *server-filesystem* | *mcp-server-time*)
                uid=$(awk '/^Uid:/ {print $2}' "$process/status" 2>/dev/null) || continue
                [ "$uid" != 0 ] || fail "a server runs as root: $words"
                found=$((found + 1)) ;;
        esac
    done
    [ "$found" -ge "$servers" ] || fail "$found server processes for $servers servers"
    echo "$found server processes, none of them as root"
fi

endpoint=/run/mcp-bridge/endpoint.json
[ "$(id -u)" -eq 0 ] || endpoint=$HOME/.local/state/mcp-bridge/run/endpoint.json
kill -TERM "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["pid"])' "$endpoint")"
end=$((SECONDS + STOP_WITHIN))
while kill -0 "$make" 2>/dev/null; do
    [ "$SECONDS" -lt "$end" ] || fail "still there $STOP_WITHIN s after SIGTERM"
    sleep 1
done
wait "$make" || fail "make run ended with status $? after SIGTERM"
echo "stopped cleanly"

[ "${1:-}" = --no-test ] && exit 0
make test >"$HOME/test.log" 2>&1 || { tail -n 600 "$HOME/test.log"; echo "FAIL: make test"; exit 1; }
tail -n 1 "$HOME/test.log"
