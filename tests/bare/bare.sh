#!/bin/bash
# A newcomer's first minutes on a bare Debian 12: `make run`, every line that it prints, `make test`.
#
#     tests/bare/bare.sh root|user [--no-test]
#
# Needs root, mmdebstrap and the package registries. The root file system is made once and kept in
# MCP_BRIDGE_BARE_CACHE; each run works on a fresh overlay of it, in mount and process namespaces of
# its own, so that nothing outlives it. The network is the host's, and so are the package settings:
# the files and variables of pip, npm and the certificates, without which no registry may be reached.
# Exit 77: it could not run, and the last line says why.
set -euo pipefail

who=${1:-}
[ "$who" = root ] || [ "$who" = user ] || { echo "usage: bare.sh root|user [--no-test]" >&2; exit 64; }
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
cache=${MCP_BRIDGE_BARE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mcp-bridge-bare}
base=$cache/bookworm

cannot() { echo "$*"; exit 77; }
[ "$(id -u)" -eq 0 ] || cannot "making a bare root file system needs root"
for program in mmdebstrap unshare chroot tar git; do
    command -v "$program" >/dev/null || cannot "$program is not installed (apt-get install mmdebstrap)"
done

mkdir -p "$cache"
exec 9>"$cache/lock-$who"
flock -w 60 9 || cannot "another run as $who is under way"
exec 8>"$cache/lock-base"
flock 8
if [ ! -e "$base/.complete" ]; then
    rm -rf --one-file-system "$base"
    mmdebstrap --variant=minbase --include=git,make,curl,python3-venv,ca-certificates \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$base" ||
        cannot "mmdebstrap could not make a Debian 12"
    touch "$base/.complete"
fi
flock -u 8

work=$cache/run-$who
rm -rf --one-file-system "$work"
mkdir -p "$work/upper" "$work/work" "$work/root"
trap 'rm -rf --one-file-system "$work"' EXIT

# Committed and not yet committed alike; what git ignores stays out, as in a clone.
(cd "$checkout" && git ls-files -coz --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    tar --null --no-recursion -cf "$work/checkout.tar" -T -)

unshare --mount --pid --fork --kill-child --propagation private \
    bash "$here/enter.sh" "$who" "$base" "$work" "$here/inside.sh" "${2:-}"
