#!/usr/bin/env bash
# Builds the wheel and the source distribution into dist/, or with `check` installs them into empty environments and tries them.
#
#     scripts/dist.sh build PYTHON
#     scripts/dist.sh check PYTHON         some minutes: 600 MB are installed, and Spark is started
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

WHAT=$1
PYTHON=${2:-python3}
LOCK=$PWD/requirements-dev.lock
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "dist: $*" >&2; }
pip() { "$work/$1/bin/python" -m pip --quiet --disable-pip-version-check "${@:2}"; }

build() {
    "$PYTHON" -m venv "$work/build"
    pip build install build
    rm -rf build dist
    # The wheel is made from the source distribution, so that one cannot have what the other lacks.
    "$work/build/bin/python" -m build --outdir dist . >"$work/log" || { cat "$work/log" >&2 && exit 1; }
    ls -1 dist
}

# What somebody does who has the wheel alone, in a folder without the repository.
try_core() {
    export PATH=$work/core/bin:$PATH
    cd "$work"
    towpath --version
    towpath docs job-file >page.md && grep -q '^# ' page.md
    cp -r "$(towpath docs --folder)/examples" examples
    towpath check examples/market.yaml
    towpath init job.yaml >/dev/null
    towpath run job.yaml --seconds 20
    towpath sql job.yaml 'SELECT count(*) > 0 AS found FROM "high-bids"' --json | grep -q '"found": true'
    towpath up --help >/dev/null
    # What an extra brings is asked for with the line that installs it.
    if towpath simulate examples/problem.yaml --planner producer --seconds 1 2>said; then
        say "towpath simulate runs without its extra" && exit 1
    fi
    grep -q "pip install 'towpath\[lab\]'" said
}

try_extras() {
    cd "$work"
    towpath simulate examples/problem.yaml --planner producer --seconds 1 >/dev/null
    towpath plan examples/problem.yaml --compare all >/dev/null
    "$work/core/bin/python" -c 'import confluent_kafka'
}

check() {
    local wheel
    wheel=$(ls "$PWD"/dist/*.whl)
    "$PYTHON" -m venv "$work/core"
    say "installing $(basename "$wheel") into an empty environment"
    pip core install --constraint "$LOCK" "$wheel"
    (try_core)
    say "and its extras"
    pip core install --constraint "$LOCK" "$wheel[lab,kafka]"
    (export PATH=$work/core/bin:$PATH && try_extras)
    pip core check
    say "the wheel works without and with its extras"
}

case $WHAT in
build) build ;;
check) check ;;
*) say "expected build or check, got $WHAT" && exit 2 ;;
esac
