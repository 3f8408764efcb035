"""`towpath plan`: where would a planner put the fragments of a problem, and what would that cost?"""

from __future__ import annotations

import time
from pathlib import Path

import click

from towpath.cli.failures import STOPPED
from towpath.cli.output import MESSAGES, json_option, load_problem, print_data, print_json

MOST_NODES = 40


@click.command("plan", epilog="Example: towpath plan examples/problem.yaml --compare all")
@click.argument("problem_file", metavar="PROBLEM", type=click.Path(path_type=Path))
@click.option("--planner", metavar="NAME", help="The planner that places the fragments.")
@click.option("--compare", metavar="all|NAME,...", help="Compare several planners instead.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="An option of the planner.")
@click.option("--seed", type=int, help="For what is generated or drawn, instead of the file's seed.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the placement: .yaml, .csv or .parquet.")
@click.option(
    "--planners", "folder", metavar="DIR", type=click.Path(path_type=Path), help="Find planners in this folder too."
)
@click.option("--check-only", is_flag=True, help="Only check the file and the placement that is in it.")
@click.option("--all", "everything", is_flag=True, help=f"Show all nodes, not only the first {MOST_NODES}.")
@json_option
def command(
    problem_file: Path,
    planner: str | None,
    compare: str | None,
    settings: tuple[str, ...],
    seed: int | None,
    out: Path | None,
    folder: Path | None,
    check_only: bool,
    everything: bool,
    as_json: bool,
) -> None:
    """Place the fragments of PROBLEM on its nodes, and say what that costs.

    PROBLEM is a problem file (`towpath docs placement`). Nothing is run or moved. The exit code is 1 if the file has
    mistakes or the planner fails.
    """
    from towpath import planners
    from towpath.cli import planning
    from towpath.cli.outcomes import comparison, placement_view, report

    if folder is not None:
        planners.use(folder)
    names = planning.chosen(planner, compare, check_only)
    if out and not planner:
        raise click.UsageError("--out writes one placement: use it with --planner")
    texts = planning.settings_of(settings)
    start = time.perf_counter()
    problem = load_problem(problem_file, seed)
    loaded = time.perf_counter() - start
    if check_only:
        planning.check_only(problem, loaded, as_json)
        return
    options = planning.options_of(names, texts, seed)
    outcomes, stopped = planning.run_all(problem, options, keep_failures=compare is not None)
    if compare == "all":
        outcomes += planning.left_out()
    if as_json:
        print_json(report(problem, loaded, outcomes, compare is not None))
    elif compare is None:
        print_data(*placement_view(problem, outcomes[0], None if everything else MOST_NODES))
    else:
        print_data(*comparison(problem, outcomes))
    if out and outcomes[0].placement:
        planning.write(outcomes[0].placement, out)
    if stopped:
        MESSAGES.print("stopped")
        click.get_current_context().exit(STOPPED)
