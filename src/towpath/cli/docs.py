"""`towpath docs`: the guide, as it came with this towpath."""

from __future__ import annotations

import click
from rich.table import Table

from towpath.cli.output import json_option, print_data, print_json


@click.command("docs", epilog="Example: towpath docs job-file")
@click.argument("page", required=False)
@click.option("--folder", is_flag=True, help="Print where the guide is, with its examples: docs/ and examples/.")
@json_option
def command(page: str | None, folder: bool, as_json: bool) -> None:
    """Show a PAGE of the guide, or list its pages."""
    from towpath import guide

    if folder:
        click.echo(str(guide.folder()))
    elif page is not None:
        _show(guide.page(page).read_text(encoding="utf-8"))
    elif as_json:
        print_json([{"page": n, "title": guide.title(path), "file": str(path)} for n, path in guide.pages().items()])
    else:
        table = Table("page", "about")
        for name, path in guide.pages().items():
            table.add_row(name, guide.title(path))
        print_data(table, f"`towpath docs PAGE` shows one; examples are in {guide.folder() / 'examples'}")


def _show(text: str) -> None:
    """On a terminal page by page and in colours; elsewhere as it is written."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    if not console.is_terminal:
        click.echo(text, nl=False)
        return
    with console.pager(styles=True):
        console.print(Markdown(text))
