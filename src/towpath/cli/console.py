"""`towpath console`: the link to the web console of a running job."""

from __future__ import annotations

import click

from towpath.cli.finding import Found, finds_job
from towpath.cli.output import json_option, print_json
from towpath.errors import ServiceError


@click.command("console", epilog="Example: towpath console examples/market.yaml")
@click.option("--reader", is_flag=True, help="For somebody who may look at everything and change nothing.")
@finds_job
@json_option
def command(reader: bool, found: Found, as_json: bool) -> None:
    """Print the link to the web console of a job that `towpath up` runs.

    Whoever has the link may command the job, or only look with --reader, until the service is started again.
    """
    from towpath.service.client import running_service

    service = running_service(found.folder())
    if not service.reader_token:
        raise ServiceError(f"{service.address}: this service has no console; start it with `towpath up JOB`")
    link = f"{service.address}/#token={service.reader_token if reader else service.token}"
    if as_json:
        print_json({"link": link})
    else:
        click.echo(link)
