"""`towpath init`: a job file to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from towpath.cli.output import json_option, print_json
from towpath.errors import StoreError

JOB = """\
# What runs, over which streams. `towpath check FILE` says what is wrong, all at once.

streams:
  # A made-up auction market, to try things out: 100 events a second, most of them bids.
  bids:
    source: {type: auction, table: bids, rate: 100}

  # Files that appear in a folder: CSV, JSON (an object for each line) or Parquet.
  # orders:
  #   source: {type: files, path: ./orders, format: csv}
  #   schema: {id: bigint, country: string, amount: double, at: timestamp}
  #   time: at             # the column with the event time
  #   delay: 5 seconds     # by how much rows may come late

  # A topic of Kafka, with an object of JSON for each message.
  # payments:
  #   source: {type: kafka, servers: "broker:9092", topic: payments}
  #   schema: {id: bigint, amount: double, at: timestamp}
  #   time: at

queries:
  # A name, and SQL. `towpath submit` brings more while the job runs.
  high-bids: SELECT auction, bidder, price FROM bids WHERE price > 900
  busy-auctions: |
    SELECT auction, count(*) AS n, max(price) AS best
    FROM bids [RANGE 10 SECONDS SLIDE 5 SECONDS]
    GROUP BY auction HAVING count(*) > 5

  # Also somewhere else than into the store, which has all results:
  # large:
  #   sql: SELECT id, amount FROM orders WHERE amount > 400
  #   sink: {type: parquet, path: ./large}
"""


@click.command("init", epilog="Example: towpath init shop.yaml")
@click.argument("file", metavar="[FILE]", default="job.yaml", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def command(file: Path, as_json: bool) -> None:
    """Write a job file to begin with, which runs as it is. By default job.yaml; a file that is there stays."""
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(JOB)
    except FileExistsError:
        raise StoreError(f"{file} is there already\n    -> name another file: towpath init other.yaml") from None
    except OSError as error:
        raise StoreError(f"{file}: cannot be written: {error.strerror}") from error
    if as_json:
        print_json({"file": str(file)})
        return
    click.echo(f"wrote {file}. Next:")
    for verb, what in (("check", "what is wrong with it"), ("up", "runs it, until Ctrl-C"), ("results", "its answers")):
        click.echo(f"    {f'towpath {verb} {file}':<40}{what}")
