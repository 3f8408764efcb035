#!/usr/bin/env bash
# The pages of the web console. "packages" installs what builds and checks them, "build" builds them into the package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../console"

say() { echo "console: $*" >&2; }

if ! command -v npm >/dev/null; then
    say "npm is missing: install Node.js 20 or newer (https://nodejs.org), then run the same command again"
    exit 1
fi
# npm writes node_modules/.package-lock.json whenever it has installed.
if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
    say "installing the packages of package-lock.json into console/node_modules"
    npm ci --no-audit --no-fund --loglevel=error >&2
fi
if [[ ${1:-build} == build ]]; then npm run build; fi
