"""Packages that not every installation has: which extra of towpath brings them, and the words for their absence."""

from __future__ import annotations

from importlib.util import find_spec

from towpath.errors import MissingPackageError

# As in pyproject.toml, by the names under which they are imported.
EXTRAS = {
    "planners": ("highspy", "scipy"),
    "lab": ("highspy", "matplotlib", "numba", "scipy"),
    "kafka": ("confluent_kafka",),
}


def missing(extra: str) -> list[str]:
    """The packages of an extra that are not installed. None of them is imported to find out."""
    return [package for package in EXTRAS[extra] if find_spec(package) is None]


def advice(extra: str) -> str:
    return f"pip install 'towpath[{extra}]'"


def require(extra: str, who: str, *packages: str) -> None:
    """Raises MissingPackageError unless these packages of an extra, by default all, are installed.

    To be called before any work is done, and not in the middle of it.
    """
    if absent := [package for package in missing(extra) if not packages or package in packages]:
        raise MissingPackageError(f"{who} needs {_not_installed(absent)}", advice(extra))


def explained(error: Exception, who: str) -> MissingPackageError | None:
    """The same of an import that has failed, if a package of an extra was what could not be found."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    package = (error.name or "").partition(".")[0]
    for extra in EXTRAS:
        if package in missing(extra):
            return MissingPackageError(f"{who} needs {_not_installed([package])}", advice(extra))
    return None


def _not_installed(packages: list[str]) -> str:
    *others, last = packages
    if not others:
        return f"the package {last}, which is not installed"
    return f"the packages {', '.join(others)} and {last}, which are not installed"
