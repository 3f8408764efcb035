#!/usr/bin/env python3
"""Can the tests fail? Makes one deliberate mistake at a time and looks whether they notice.

    scripts/mutants.py                     all of tests/mutants/*.patch, in a copy of the tree
    scripts/mutants.py fence-late feed     those whose names begin so
    scripts/mutants.py --json              a line of JSON for each

A patch begins with lines before its first `diff`: what the mistake is, and `tests:` with the tests to run, the quickest
first. A mutant is caught when one of them fails; it survives when all pass, and then the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATCHES = ROOT / "tests" / "mutants"
MARKS = "not long and not chaos and not live"
TIMEOUT_S = 1200


@dataclass(frozen=True)
class Verdict:
    mutant: str
    mistake: str
    caught_by: str | None
    seconds: float


def main() -> int:
    arguments = _arguments()
    patches = [p for p in sorted(PATCHES.glob("*.patch")) if not arguments.names or p.stem.startswith(arguments.names)]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        _run(["git", "worktree", "add", "--detach", str(tree), "HEAD"], ROOT)
        try:
            verdicts = [_try(patch, tree, as_json=arguments.json) for patch in patches]
        finally:
            _run(["git", "worktree", "remove", "--force", str(tree)], ROOT)
    survivors = [v.mutant for v in verdicts if v.caught_by is None]
    print(f"{len(verdicts) - len(survivors)} of {len(verdicts)} caught", file=sys.stderr)
    return 1 if survivors else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of names")
    parser.add_argument("--json", action="store_true")
    parsed = parser.parse_args()
    parsed.names = tuple(parsed.names)
    return parsed


def _try(patch: Path, tree: Path, *, as_json: bool) -> Verdict:
    head = patch.read_text().split("diff --git", 1)[0].strip().splitlines()
    mistake = " ".join(line for line in head if not line.startswith("tests:"))
    tests = [line.removeprefix("tests:").split() for line in head if line.startswith("tests:")]
    _run(["git", "apply", "--recount", str(patch)], tree)
    begun, caught = time.monotonic(), None
    try:
        for stage in tests:
            caught = caught or _failing(stage, tree)
    finally:
        _run(["git", "checkout", "--quiet", "."], tree)
    verdict = Verdict(patch.stem, mistake, caught, round(time.monotonic() - begun, 1))
    told = f"{verdict.mutant:32} {verdict.seconds:6.0f} s  {caught or 'SURVIVES'}"
    print(json.dumps(asdict(verdict)) if as_json else told, flush=True)
    return verdict


def _failing(tests: Sequence[str], tree: Path) -> str | None:
    """The first test that fails, or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", MARKS, *tests]
    path = {"PYTHONPATH": str(tree / "src")}
    done = subprocess.run(
        ["env", *(f"{k}={v}" for k, v in path.items()), *command],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if not failed or done.returncode not in (1, 2):
        raise SystemExit(f"{' '.join(tests)}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}")
    return failed[0].split(" - ")[0]


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())
