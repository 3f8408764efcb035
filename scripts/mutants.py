#!/usr/bin/env python3
"""Can the tests fail? Makes one deliberate mistake at a time and looks whether they notice.

    scripts/mutants.py                     all of tests/mutants/*.patch, in a copy of the last commit
    scripts/mutants.py fence-late feed     those whose names begin so
    scripts/mutants.py --json              a line of JSON for each

A patch begins with lines before its first `diff`: what the mistake breaks, `tests:` with the tests to run, the quickest
first, and `added:` with the test that was written for it, if none of those that were there noticed.

First the tests are run without a mistake, and have to pass. A mutant is then caught when one of its tests fails. The
exit code is 1 when a mutant survives, and when a patch does not apply any more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATCHES = ROOT / "tests" / "mutants"
MARKS = "not long and not chaos and not live"
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-m", MARKS)
TIMEOUT_S = 1200
SURVIVES, STALE = "SURVIVES", "DOES NOT APPLY"


@dataclass(frozen=True)
class Mutant:
    name: str
    place: str
    mistake: str
    tests: tuple[tuple[str, ...], ...]  # those of a line are run together
    added: str
    verdict: str = ""  # the test that noticed
    seconds: float = 0.0

    @staticmethod
    def read(patch: Path) -> Mutant:
        head, diff = patch.read_text().split("diff --git", 1)
        lines = head.strip().splitlines()
        said = [line for line in lines if not line.startswith(("tests:", "added:"))]
        tests = tuple(tuple(line.split()[1:]) for line in lines if line.startswith("tests:"))
        added = [line.removeprefix("added:").strip() for line in lines if line.startswith("added:")]
        place = diff.split("+++ b/", 1)[1].split()[0].removeprefix("src/towpath/")
        if not tests:
            raise SystemExit(f"{patch}: expected a line `tests:` with the tests that notice it")
        return Mutant(patch.stem, place, " ".join(said), tests, " ".join(added))

    @property
    def is_caught(self) -> bool:
        return self.verdict not in (SURVIVES, STALE)

    def row(self) -> str:
        caught = self.verdict if not self.is_caught else f"`{self.verdict.removeprefix('tests/')}`"
        at_first = f" Not caught at first; added: {self.added}." if self.added else ""
        return f"| {self.name} | {self.place} | {self.mistake}{at_first} | {caught} | {self.seconds:.0f} |"


def main() -> int:
    arguments = _arguments()
    patches = [p for p in sorted(PATCHES.glob("*.patch")) if not arguments.names or p.stem.startswith(arguments.names)]
    if not patches:
        raise SystemExit(f"no patch in {PATCHES} has such a name")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        _run(["git", "worktree", "add", "--detach", str(tree), "HEAD"], ROOT)
        try:
            tried = _try_all([Mutant.read(patch) for patch in patches], tree, as_json=arguments.json)
        finally:
            _run(["git", "worktree", "remove", "--force", str(tree)], ROOT)
    caught = sum(mutant.is_caught for mutant in tried)
    print(f"{caught} of {len(tried)} caught", file=sys.stderr)
    return 0 if caught == len(tried) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of names")
    parser.add_argument("--json", action="store_true")
    parsed = parser.parse_args()
    parsed.names = tuple(parsed.names)
    return parsed


def _try_all(mutants: Sequence[Mutant], tree: Path, *, as_json: bool) -> list[Mutant]:
    """A test that fails anyway would catch every mutant."""
    tests = dict.fromkeys(test for mutant in mutants for stage in mutant.tests for test in stage)
    if failing := _failing(list(tests), tree):
        raise SystemExit(f"{failing} fails without any mistake")
    if not as_json:
        print("| mutant | place | what it breaks | caught by | seconds |\n|---|---|---|---|---|")
    tried = []
    for mutant in mutants:
        tried.append(_try(mutant, tree))
        print(json.dumps(asdict(tried[-1])) if as_json else tried[-1].row(), flush=True)
    return tried


def _try(mutant: Mutant, tree: Path) -> Mutant:
    patch = PATCHES / f"{mutant.name}.patch"
    if subprocess.run(["git", "apply", "--recount", str(patch)], cwd=tree, capture_output=True, check=False).returncode:
        return replace(mutant, verdict=STALE)
    begun = time.monotonic()
    try:
        found = next((failing for stage in mutant.tests if (failing := _failing(stage, tree))), SURVIVES)
    finally:
        _run(["git", "checkout", "--quiet", "."], tree)
    return replace(mutant, verdict=found, seconds=round(time.monotonic() - begun, 1))


def _failing(tests: Sequence[str], tree: Path) -> str | None:
    """The first test that fails, or None."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PYTEST, *tests],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
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
    return failed[0].split(" - ")[0].split(" ", 1)[1]


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())
