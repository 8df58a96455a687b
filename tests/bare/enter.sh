#!/bin/bash
# Inside the namespaces of bare.sh: mount the overlay, lay the checkout, go in as the newcomer.
set -euo pipefail
who=$1 base=$2 work=$3 inside=$4 option=$5
root=$work/root

mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"

# The host's package settings; which directories they name is read from them.
settings=(/etc/pip.conf /etc/xdg/pip/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf")
settings+=(/etc/npmrc /usr/etc/npmrc "$HOME/.npmrc")
named() {
    { cat "${settings[@]}" 2>/dev/null || true; env | grep -i -E '^(pip|uv|npm_config)_' || true; } |
        grep -o -E '(file://|[ =])/[A-Za-z0-9._/-]+' | sed -E 's#^(file://|[ =])##' | sort -u
}
lend() { # a file or directory of the host at the same place, read-only
    [ -e "$1" ] || return 0
    [ ! "$1" -ef "$root$1" ] || return 0 # its directory is lent already
    if [ -d "$1" ]; then mkdir -p "$root$1"; else mkdir -p "$root$(dirname "$1")"; touch "$root$1"; fi
    mount --rbind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
}
for path in /etc/resolv.conf /etc/hosts /etc/ssl/certs /usr/local/share/ca-certificates \
    /etc/pip.conf /etc/xdg/pip /etc/npmrc; do lend "$path"; done
while read -r path; do
    # The files of a package index may lie beside its list.
    case $path/ in "$HOME"/* | /usr/* | /etc/ssl/* | /dev/*) ;; *) lend "${path%/simple}" ;; esac
done < <(named)

if [ "$who" = root ]; then home=/root; else home=/home/newcomer; fi
[ "$who" = root ] || chroot "$root" useradd --create-home --shell /bin/bash newcomer
mkdir -p "$root$home/.config/pip" "$root$home/autobot-mcp-bridge"
[ ! -e "$HOME/.config/pip/pip.conf" ] || cp "$HOME/.config/pip/pip.conf" "$root$home/.config/pip/"
[ ! -e "$HOME/.npmrc" ] || cp "$HOME/.npmrc" "$root$home/.npmrc"
tar -xf "$work/checkout.tar" -C "$root$home/autobot-mcp-bridge"
cp "$inside" "$root/tmp/inside.sh"
[ "$who" = root ] || chroot "$root" chown -R newcomer:newcomer "$home"

vars=(HOME="$home" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
while IFS= read -r -d '' variable; do
    name=${variable%%=*}
    case ${name^^} in
        PIP_* | UV_* | NPM_CONFIG_* | SSL_* | *_CA_BUNDLE | *_CA_CERTS | HTTP_PROXY | HTTPS_PROXY | NO_PROXY)
            vars+=("$variable") ;;
    esac
done < <(env -0)

go=(bash /tmp/inside.sh "$option")
[ "$who" = root ] || go=(setpriv --reuid=newcomer --regid=newcomer --init-groups "${go[@]}")
exec chroot "$root" /usr/bin/env -i "${vars[@]}" "${go[@]}"
