"""`towpath node`: Spark Connect servers on this machine, as nodes for jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table

from towpath.cli.logs import log_format_option, speaks_json
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
@click.option("--master", metavar="URL", help="A Spark cluster that does the work, as in spark://host:7077.")
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; repeatable.")
@click.option("--jars", multiple=True, type=click.Path(exists=True, dir_okay=False), help="A jar file; repeatable.")
@click.option("--packages", help="Packages of Maven Central that Spark fetches, as in group:name:version,...")
@log_format_option
@json_option
def start(
    name: str,
    cores: int,
    memory: str,
    port: int | None,
    master: str | None,
    conf: tuple[str, ...],
    jars: tuple[str, ...],
    packages: str | None,
    as_json: bool,
) -> None:
    """Start a node and wait until it answers.

    With --master the node is a whole cluster: --cores are the cluster's then, and --memory is of the server here. Its
    workers reach it at --conf spark.driver.host=ADDRESS. Whoever speaks to a node needs its token, which your jobs on
    this machine find by themselves. A job that reads Kafka needs Spark's connector on its nodes: --packages, or --jars
    where nothing can be fetched.
    """
    from towpath.spark import server

    with working(f"starting node {name}, which takes about 10 seconds"):
        spark = _settings(conf) | _jar_settings(jars, packages)
        started = server.start(name, cores, memory, port, spark, lambda: None, master=master, json_log=speaks_json())
    if as_json:
        print_json(asdict(started))
    else:
        click.echo(f"node {name} listens at {started.address} (process {started.pid}, log {started.log})")


def _settings(conf: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in conf]
    strange = [name for name, equals, _ in pairs if not (equals and name.startswith("spark."))]
    if strange:
        raise click.BadParameter(f"expected spark.NAME=VALUE, got {', '.join(strange)}", param_hint="--conf")
    return {name: value for name, _, value in pairs}


def _jar_settings(jars: Sequence[str], packages: str | None) -> dict[str, str]:
    paths = ",".join(str(Path(jar).absolute()) for jar in jars)
    return ({"spark.jars": paths} if paths else {}) | ({"spark.jars.packages": packages} if packages else {})


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
@json_option
def stop(names: tuple[str, ...], as_json: bool) -> None:
    """Stop nodes. What their carriers have not committed is done again when they start elsewhere."""
    from towpath.spark import server

    for name in names:
        with working(f"stopping node {name}"):
            server.stop(name)
        if not as_json:
            click.echo(f"node {name} is stopped")
    if as_json:
        print_json({"stopped": list(names)})
