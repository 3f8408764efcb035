"""`towpath node`: Spark Connect servers on this machine, as nodes for jobs."""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.table import Table

from towpath.cli.output import json_option, print_data, print_json, working


@click.group("node", epilog="Example: towpath node start left --cores 1 --memory 2g")
def command() -> None:
    """Start, list and stop nodes on this machine.

    A node is a Spark Connect server in a process of its own. It goes on when the job that uses it stops or dies. Name
    it in a job file as `left: {type: connect, address: ..., cores: 1}`.
    """


@command.command("start", epilog="Example: towpath node start left --cores 1 --memory 2g")
@click.argument("name")
@click.option("--cores", type=click.IntRange(min=1), default=2, show_default=True, help="Tasks at a time.")
@click.option("--memory", default="2g", show_default=True, help="Memory for the JVM, as in 512m or 4g.")
@click.option("--port", type=click.IntRange(1, 65535), help="Where it listens.  [default: a free one]")
@json_option
def start(name: str, cores: int, memory: str, port: int | None, as_json: bool) -> None:
    """Start a node and wait until it answers."""
    from towpath.spark import server

    with working(f"starting node {name}, which takes about 10 seconds"):
        started = server.start(name, cores, memory, port, {}, lambda: None)
    if as_json:
        print_json(asdict(started))
    else:
        click.echo(f"node {name} listens at {started.address} (process {started.pid}, log {started.log})")


@command.command("list", epilog="Example: towpath node list --json")
@json_option
def list_(as_json: bool) -> None:
    """List the nodes that were started and not stopped."""
    from towpath.spark import server

    found = server.servers().values()
    if as_json:
        print_json([asdict(s) | {"alive": s.alive} for s in found])
        return
    table = Table("node", "address", "process", "cores", "memory", "state")
    for s in found:
        table.add_row(s.name, s.address, str(s.pid), str(s.cores), s.memory, "runs" if s.alive else "is gone")
    print_data(table if found else "no node was started on this machine; `towpath node start NAME` starts one")


@command.command("stop", epilog="Example: towpath node stop left")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def stop(names: tuple[str, ...]) -> None:
    """Stop nodes. What their carriers have not committed is done again when they start elsewhere."""
    from towpath.spark import server

    for name in names:
        with working(f"stopping node {name}"):
            server.stop(name)
        click.echo(f"node {name} is stopped")
