"""`towpath prepare`: makes Spark start faster on this machine."""

from __future__ import annotations

import click

from towpath.cli.output import json_option, print_json, working


@click.command("prepare", epilog="Example: towpath prepare --if-missing")
@click.option("--if-missing", is_flag=True, help="Do nothing if it was done before for this Java and this Spark.")
@json_option
def command(if_missing: bool, as_json: bool) -> None:
    """Make Spark start faster on this machine: once, and again after a new Java or a new Spark.

    Runs a small job and keeps an archive of the classes that it loaded, about 220 MB in the user's cache, for jobs,
    nodes and the demo. Takes a minute or two.
    """
    from towpath.api.preparing import prepare
    from towpath.spark import class_archive

    archive = class_archive.path()
    made = not (if_missing and archive.exists())
    if made:
        with working("starting Spark") as say:
            archive = prepare(say)
    size_mb = round(archive.stat().st_size / 1e6)
    if as_json:
        print_json({"archive": str(archive), "megabytes": size_mb, "made": made})
    else:
        click.echo(
            f"{'made' if made else 'there is already'} {archive} ({size_mb} MB); every Spark that starts uses it"
        )
