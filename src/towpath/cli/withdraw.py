"""`towpath withdraw`: queries leave a running job."""

from __future__ import annotations

import click

from towpath.cli.finding import Found, commands_service, leading_job
from towpath.cli.output import counted, json_option, print_json, working


@click.command("withdraw", epilog="Example: towpath withdraw hot cold")
@click.argument("names", metavar="[JOB] NAME...", nargs=-1, required=True)
@commands_service
@json_option
def command(names: tuple[str, ...], found: Found, as_json: bool) -> None:
    """Withdraw queries, all of them or none. What they have answered stays; `towpath results` shows it.

    A query of the job file or its folder comes back with the next start of the job, unless it is taken out there too.
    """
    names, found = leading_job(names, found)
    with found.client() as client, working(f"withdrawing {counted(len(names), 'query', 'queries')}"):
        gone = client.withdraw(names)
    if as_json:
        print_json(gone)
    else:
        click.echo(f"withdrawn: {', '.join(gone)}")
