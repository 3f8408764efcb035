#!/usr/bin/env bash
# Makes the virtual environment $1 with the Python $2, or with the newest that is here and new enough.
set -euo pipefail

VENV=$1
OLDEST=3.11

say() { echo "python: $*" >&2; }

# A name on PATH is not enough: version managers put stubs there for versions that are not installed.
new_enough() { "$1" -c "import sys; sys.exit(sys.version_info < (${OLDEST/./, }))" 2>/dev/null; }

# Debian ships the venv module without ensurepip, which it needs, unless python3-venv is installed.
makes_venvs() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

candidates() {
    local name
    for name in python3.13 python3.12 python3.11 python3; do
        if new_enough "$name"; then echo "$name"; fi
    done
}

first_that_makes_venvs() {
    local name
    for name in $(candidates); do
        if makes_venvs "$name"; then echo "$name" && return; fi
    done
    return 1
}

venv_package() { "$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'; }

add_venv_module() {
    local package
    package=$(venv_package "$1")
    if command -v apt-get >/dev/null && [[ $(id -u) == 0 ]]; then
        say "the venv module is missing, installing $package with apt-get"
        apt-get update -q >&2 || say "apt-get update failed, going on with the package lists that are here"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" >&2 || true
    fi
    if ! makes_venvs "$1"; then
        say "$1 has no working venv module. On Debian and Ubuntu install it, then run the same command again:"
        echo "    sudo apt-get update && sudo apt-get install -y $package" >&2
        exit 1
    fi
}

what_to_do() {
    say "towpath needs Python $OLDEST or newer; $(python3 -V 2>/dev/null || echo 'no python3 at all') was found. Install one:"
    cat >&2 <<EOF
    Debian 12, Ubuntu 24.04 and later:  sudo apt-get update && sudo apt-get install -y python3 python3-venv
    Fedora:                             sudo dnf install -y python3.12
    macOS:                              brew install python@3.12
then run the same command again.
EOF
    exit 1
}

if [[ -x $VENV/bin/python ]] && new_enough "$VENV/bin/python"; then exit; fi
python=${2:-$(first_that_makes_venvs || candidates | head -n 1)}
[[ -n $python ]] || what_to_do
makes_venvs "$python" || add_venv_module "$python"
say "making $VENV with $("$python" -V)"
"$python" -m venv --clear "$VENV"
