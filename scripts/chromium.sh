#!/usr/bin/env bash
# Finds a Chromium and prints its path on stdout; as root with apt-get it installs one.
set -euo pipefail

found() { command -v "${TOWPATH_CHROMIUM:-}" chromium chromium-browser google-chrome 2>/dev/null | head -n 1; }

if [[ -z $(found || true) ]] && command -v apt-get >/dev/null && [[ $(id -u) == 0 ]]; then
    echo "chromium: installing it with apt-get" >&2
    apt-get update -q >&2 || echo "chromium: apt-get update failed, going on with the package lists that are here" >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium >&2 || true
fi
path=$(found || true)
if [[ -z $path ]]; then
    echo "chromium: not found. Install it (Debian: sudo apt-get install chromium), or name one in TOWPATH_CHROMIUM" >&2
    exit 1
fi
echo "$path"
