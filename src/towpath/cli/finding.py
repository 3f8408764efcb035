"""How a command finds its job: by the job file, by the store, by an address, or because there is only one here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from towpath.errors import StoreError

if TYPE_CHECKING:  # a command that fails early need not wait for HTTP
    from towpath.service.client import Client

Command = Callable[..., Any]

SUFFIXES = (".yaml", ".yml")
LONGEST_NAME = 250  # of a file; statements of SQL may be longer, and asking for such a file fails
MOST_NAMED = 3  # of several that could be meant


@dataclass(frozen=True)
class Found:
    """What the user said about where the job is."""

    job: Path | None = None
    store: Path | None = None
    address: str | None = None
    token_file: Path | None = None

    def folder(self) -> Path:
        """The store. Without a word of the user's, the only one of the current folder."""
        return self._named() or _only(_here("journal.sqlite"))

    def client(self) -> Client:
        from towpath.service.client import Client, find

        if self.address is not None:
            return Client(self.address, self._token())
        return find(self._named() or _only(_here("service.json") or _here("journal.sqlite")))

    def _named(self) -> Path | None:
        return self.store if self.job is None else store_of(self.job)

    def _token(self) -> str:
        if self.token_file is None:
            raise click.UsageError("--address needs --token-file: a file with the token from service.json of the store")
        from towpath.config.nodes import read_token

        return read_token(self.token_file)


def leading_job(words: tuple[str, ...], found: Found) -> tuple[tuple[str, ...], Found]:
    """The same with the job taken from the front of the words, if they begin with a job file or a store."""
    if len(words) < 2 or not _is_job(Path(words[0])):
        return words, found
    if found != Found():
        raise click.UsageError(f"name the job once: as the first word ({words[0]}) or by an option")
    return words[1:], Found(job=Path(words[0]))


def leading_job_and_word(words: tuple[str, ...], found: Found, what: str) -> tuple[str, Found]:
    """The same where exactly one word follows."""
    words, found = leading_job(words, found)
    if len(words) != 1:
        raise click.UsageError(f"expected [JOB] {what}, got {' '.join(words)}")
    return words[0], found


def leading_job_or_words(words: tuple[str, ...], found: Found, most: int = 1) -> tuple[Found, tuple[str, ...]]:
    """The same where nothing has to follow, and `most` words at most: a single word is the job if it looks like one."""
    if not words or not (len(words) > most or _is_meant_for_job(words[0])):
        return found, words
    if found != Found():
        raise click.UsageError(f"name the job once: as the first word ({words[0]}) or by an option")
    return Found(job=Path(words[0])), words[1:]


def _is_job(path: Path) -> bool:
    return (path.suffix in SUFFIXES and path.is_file()) or (path / "journal.sqlite").is_file()


def _is_meant_for_job(word: str) -> bool:
    """Also one that is not there, which is to be said, or is a folder and no store."""
    if len(word) > LONGEST_NAME:
        return False
    path = Path(word)
    return _is_job(path) or (len(word.split()) == 1 and (path.suffix in SUFFIXES or "/" in word or path.is_dir()))


def job_file_first(words: tuple[str, ...]) -> tuple[Path, tuple[str, ...]]:
    """The job file, and the other words: the file is the first of them, or the only one here."""
    if words and _is_meant_for_job(words[0]):
        return Path(words[0]), words[1:]
    return only_job_file(), words


def only_job_file() -> Path:
    found = sorted(path for suffix in SUFFIXES for path in Path().glob(f"*{suffix}"))
    if len(found) == 1:
        return found[0]
    here = f"found {', '.join(map(str, found[:MOST_NAMED]))}" if found else "found none"
    hint = "name the job file" if found else "name the job file, or write one to begin with: towpath init"
    raise StoreError(f"{Path.cwd()}: expected one job file here, {here}\n    -> {hint}")


def runs_job_file(command: Command) -> Command:
    """Adds the argument JOB of commands that need the file and not the store; the command gets `job_file`."""

    def chosen(_: click.Context, __: click.Parameter, path: Path | None) -> Path:
        return path or only_job_file()

    kind = click.Path(path_type=Path)
    return click.argument("job_file", metavar="[JOB]", required=False, type=kind, callback=chosen)(command)


def store_of(job: Path) -> Path:
    """The store of a job file; a store is its own."""
    if job.is_dir():
        return job
    if not job.exists():
        raise StoreError(f"{job}: expected a job file or the store of a job, and there is nothing")
    from towpath import job as jobs

    return jobs.load(job).store


def _here(file: str) -> list[Path]:
    return sorted(found.parent for found in Path().glob(f"*.store/{file}"))


def _only(stores: list[Path]) -> Path:
    if len(stores) != 1:
        found = f"the stores of several jobs ({', '.join(map(str, stores))})" if stores else "no store of a job"
        hint = "name the job file, or its store with --store DIR"
        raise StoreError(f"{Path.cwd()}: expected one job here, found {found}\n    -> {hint}")
    return stores[0]


def finds_job(command: Command) -> Command:
    """Adds the argument JOB and --store; the command gets `found`."""
    argument = click.argument("job", metavar="[JOB]", required=False, type=click.Path(path_type=Path))
    return argument(_store_option(_gathered(command)))


def finds_service(command: Command) -> Command:
    """The same with an address too."""
    argument = click.argument("job", metavar="[JOB]", required=False, type=click.Path(path_type=Path))
    return argument(_store_option(_address_options(_gathered(command))))


def commands_service(command: Command) -> Command:
    """The same for commands whose arguments are something else: the job is an option."""
    option = click.option("--job", type=click.Path(path_type=Path), help="The job file (or its store).")
    return option(_store_option(_address_options(_gathered(command))))


def _gathered(command: Command) -> Command:
    @functools.wraps(command)
    def called(
        *args: Any,
        job: Path | None,
        store: Path | None,
        address: str | None = None,
        token_file: Path | None = None,
        **kwargs: Any,
    ) -> Any:
        if (job is not None) + (store is not None) + (address is not None) > 1:
            raise click.UsageError("name the job once: by its file, by --store or by --address")
        return command(*args, found=Found(job, store, address, token_file), **kwargs)

    return called


def _store_option(command: Command) -> Command:
    text = "The job's store.  [default: the only *.store here]"
    return click.option("--store", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help=text)(command)


def _address_options(command: Command) -> Command:
    address = click.option("--address", metavar="URL", help="Of a service elsewhere: a tunnel, or https://...")
    token = click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help="Its token.")
    return address(token(command))
