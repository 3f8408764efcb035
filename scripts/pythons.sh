#!/usr/bin/env bash
# Names the Pythons to test with besides the one of the virtual environment $1: the oldest and the newest that are here
# and supported, each with its version before it. Debian's own is installed with apt-get if there is none and we may.
set -euo pipefail

OWN=$1
SUPPORTED='3\.1[1-3]\.'

version() { "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null || true; }

everywhere() {
    local name
    for name in 3.11 3.12 3.13; do
        command -v "python$name" || true
        echo "/usr/bin/python$name"
    done
    for name in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do echo "$name"; done
}

install_debians() {
    if [[ -x /usr/bin/python3 || $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then return; fi
    apt-get update -q >&2 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3 python3-venv >&2 || true
}

install_debians
own=$(version "$OWN/bin/python")
found=$(everywhere | while read -r python; do
    number=$(version "$python")
    # A name may be a stub of a version manager; what the interpreter calls itself is the real one.
    if [[ $number =~ ^$SUPPORTED && $number != "$own" ]]; then
        echo "$number $("$python" -c 'import sys; print(sys.executable)')"
    fi
done | sort -V -u -k1,1)
[[ -n $found ]] || exit 0
{ head -n 1 <<<"$found"; tail -n 1 <<<"$found"; } | uniq
