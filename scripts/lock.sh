#!/usr/bin/env bash
# Writes the lock file $1: the newest versions that pyproject.toml allows, as a fresh environment gets them.
set -euo pipefail

LOCK=$1
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

"$(dirname "${BASH_SOURCE[0]}")/venv.sh" "$fresh/venv"
echo "installing the newest packages to see what they are (a few minutes)" >&2
"$fresh/venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
{
    echo "# Versions that towpath is developed and tested with. Made by \`make lock\`; do not edit."
    "$fresh/venv/bin/python" -m pip freeze --exclude towpath
} >"$fresh/lock"
mv "$fresh/lock" "$LOCK"
