"""Everything about the package is in pyproject.toml; this puts the guide and the examples into it.

Messages of towpath cite them, so that whoever has the wheel alone can read them: `towpath docs`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

GUIDE = ("docs", "examples", "CHANGELOG.md", "LICENSE", "README.md", "ARCHITECTURE.md", "SECURITY.md")


class BuildWithGuide(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:  # there it is read where it is
            return
        guide = Path(self.build_lib) / "towpath" / "guide_pages"
        shutil.rmtree(guide, ignore_errors=True)
        for name in GUIDE:
            source = Path(__file__).parent / name
            if source.is_dir():
                shutil.copytree(source, guide / name, ignore=shutil.ignore_patterns("__pycache__", "*.store", ".*"))
            else:
                shutil.copy2(source, guide / name)


setup(cmdclass={"build_py": BuildWithGuide})
