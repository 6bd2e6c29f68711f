"""The command line: what asv cannot express."""

import dataclasses
import errno
import json
import signal
import sys

import click
from rich.console import Console

from . import bench as measuring
from . import bisect as splitting
from . import doctor as machine_doctor
from . import judge, local, releases, report, series
from . import lock as locking
from . import pins as locks
from . import regressions as changed
from . import site as pages
from . import sync as syncing
from . import upgrade as comparing
from . import work as same_work
from .errors import UserError
from .progress import Progress
from .stacks import ROOT, choose, load

SHARE = click.FloatRange(0, 10, min_open=True)


class Group(click.Group):
    """A command group whose user errors are one sentence and a non-zero exit, never a traceback."""

    def main(self, *args, **kwargs):
        try:
            return super().main(*args, **{**kwargs, "standalone_mode": False})
        except UserError as error:
            click.echo(f"stepline: {error}", err=True)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            click.echo("stepline: the disk is full: free some space and run again; finished cells are kept", err=True)
        except click.Abort:
            click.echo("stepline: interrupted; finished cells are kept", err=True)
            sys.exit(128 + signal.SIGINT)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        sys.exit(1)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def main():
    """Stepline: what a framework release does to the time of a step."""


def stacks_named(names):
    """The stacks of the --stack options, all of them without one.

    Raises UserError, which names the nearest, when one is unknown.
    """
    every = load()
    return [every[name] for name in choose(list(names), list(every), "stack")]


@main.command()
@click.option("--stack", multiple=True, help="A stack of stacks.toml; may be repeated. All without it.")
@click.option("--task", multiple=True, help="A task such as bert-fit or gemma-generate-32; may be repeated.")
@click.option("--scale", default="tiny", show_default=True, help="tiny, or paper for the published sizes.")
@click.option("--quick", is_flag=True, help="One sample a cell.")
@click.option("--verbose", is_flag=True, help="Show all that asv says.")
def bench(stack, task, scale, quick, verbose):
    """Install every stack, measure every cell, publish the site."""
    chosen = stacks_named(stack)
    runner = measuring.Bench(ROOT, measuring.quick() if quick else {}, verbose)
    with Progress() as progress, measuring.Session(runner, progress) as session:
        measuring.run_matrix(session, chosen, list(task), scale)
    sys.exit(measuring.exit_code(session.failures))


@main.command()
@click.argument("spec", nargs=-1, required=True)
@click.option("--stack", multiple=True, help="Only this stack; may be repeated.")
@click.option("--mode", multiple=True, type=click.Choice(["eager", "compiled"]), help="Only this mode of native-torch.")
@click.option("--task", multiple=True, help="Only this task; may be repeated.")
@click.option("--scale", default="tiny", show_default=True, help="tiny, or paper for the published sizes.")
@click.option("--rounds", default=2, show_default=True, type=click.IntRange(1), help="Processes a cell.")
@click.option("--verbose", is_flag=True, help="Show all that asv says.")
def run(spec, stack, mode, task, scale, rounds, verbose):
    """Measure releases: those that each SPEC names ("transformers>=4.38,<4.40"), on what they concern.

    What has been measured already is skipped, so an interrupted run goes on where it was.
    """
    chosen, history = stacks_named(stack), releases.History.load()
    wanted = list(dict.fromkeys(release for text in spec for release in history.range(text)))
    runner = measuring.Bench(ROOT, {}, verbose)
    with Progress() as progress, measuring.Session(runner, progress) as session:
        measuring.run_releases(session, wanted, chosen, list(mode), list(task), scale, rounds)
    sys.exit(measuring.exit_code(session.failures))


@main.command()
@click.argument("names", nargs=-1, metavar="LIBRARY==VERSION...", required=True)
def add(names):
    """Lock releases, or git revisions (LIBRARY @ git+URL@REV), on every stack that has their library.

    A git revision is a point on this machine alone, under env_matrix/local/.
    """
    for name in names:
        if "git+" in name:
            for line in local.add_revision(name):
                click.echo(line)
            continue
        library, equals, version = name.partition("==")
        if not equals:
            raise UserError(f"{name!r} names no version: write {name}==1.2.3, or say stepline sync {name}")
        which = syncing.tracked(library)
        for line in syncing.add(which, *syncing.find(which, version)):
            click.echo(line)


@main.command()
@click.argument("names", nargs=-1, metavar="[LIBRARY...]")
def sync(names):
    """Find new releases of the tracked libraries on the index, and lock them, oldest first."""
    for name in names or releases.libraries():
        library = syncing.tracked(name)
        news = syncing.missing(library)
        click.echo(f"{library.name}: {len(news)} new")
        for version, uploaded in news.items():
            for line in syncing.add(library, version, uploaded):
                click.echo(f"  {line}")


@main.command()
@click.argument("before")
@click.argument("after")
def diff(before, after):
    """Show what changes between the locks of two releases, stack by stack."""
    history = releases.History.load()
    one, other = history.one(before), history.one(after)
    shared = [stack for stack in one.locks if stack in other.locks]
    if not shared:
        raise UserError(f"{one.name} and {other.name} share no stack: name two releases of one library")
    for stack in shared:
        changed = locks.difference(locks.read(one.locks[stack]), locks.read(other.locks[stack]))
        click.echo(f"{stack}: {', '.join(changed) or 'nothing changes'}")
    for release in (one, other):
        for stack, reason in release.refused.items():
            click.echo(f"{stack}: {release.name} has no lock: {reason}")


@main.command()
@click.option("--stack", multiple=True, help="A stack of stacks.toml; may be repeated. All without it.")
@click.option("--check", is_flag=True, help="Only read the locks; needs no network.")
def lock(stack, check):
    """Make the reference locks anew from stacks.toml, each as of its day, and check all locks."""
    chosen = stacks_named(stack)
    if not check:
        for one in chosen:
            what = f"{one.name} at the reference release set, resolved as of {one.as_of}"
            locks.write(one.lock, what, locking.resolve_reference(one))
    for one in chosen:
        pins = locks.read(one.lock)
        locking.check(one, pins)
        click.echo(f"{one.name}: {len(pins)} packages")
    history = releases.History.load()
    unlocked = [f"{r.name} on {stack}" for r in history.releases for stack in r.refused]
    click.echo(f"{len(history.releases)} releases; {len(unlocked)} times a release has no lock on a stack")


@main.command()
@click.argument("before")
@click.argument("after")
@click.option("--stack", multiple=True, help="Only this stack; may be repeated.")
@click.option("--mode", multiple=True, type=click.Choice(["eager", "compiled"]), help="Only this mode of native-torch.")
@click.option("--task", multiple=True, help="Only this task; may be repeated.")
@click.option("--scale", default="tiny", show_default=True, help="tiny, or paper for the published sizes.")
@click.option(
    "--threshold", default=judge.THRESHOLD, show_default=True, type=SHARE, help="Smallest change that counts."
)
@click.option("--budget", default=60.0, show_default=True, type=click.FloatRange(0, min_open=True), help="Minutes.")
@click.option("--bisect-lock", is_flag=True, help="Find the package that carries it; takes a second budget at most.")
@click.option("--format", "form", default="text", show_default=True, type=click.Choice(list(report.FORMATS)))
@click.option("--verbose", is_flag=True, help="Show all that asv says.")
def upgrade(before, after, stack, mode, task, scale, threshold, budget, bisect_lock, form, verbose):
    """Say what going from release BEFORE to release AFTER costs, task by task.

    Each is a release, a git revision that was added, or a set of them: "transformers==4.38.1 diffusers==0.25.0". Both
    are measured in turns until every task has a verdict. Exit status: 0 no slowdown, 1 a slowdown, 2 undecided or
    failed.
    """
    try:
        one, other = local.named(before), local.named(after)
        with Progress(Console(stderr=True, highlight=False, soft_wrap=True)) as progress:
            pair = comparing.Upgrade(ROOT, progress, one, other, threshold, verbose)
            pair.prepare(stacks_named(stack), list(mode), list(task), scale)
            pair.measure(budget * 60)
            comparison = pair.judge()
            if bisect_lock:
                carriers = splitting.Bisection(ROOT, progress, comparison, budget * 60).carriers()
                comparison = dataclasses.replace(comparison, carriers=carriers)
    except UserError as error:
        click.echo(f"stepline: {error}", err=True)
        sys.exit(2)  # 1 would say that there is a slowdown
    click.echo(report.FORMATS[form](comparison))
    sys.exit(comparison.exit_code)


@main.command()
@click.option("--library", multiple=True, help="Only this tracked library; may be repeated.")
@click.option("--stack", multiple=True, help="Only this stack, with or without its mode; may be repeated.")
@click.option("--task", multiple=True, help="Only this task; may be repeated.")
@click.option("--machine", multiple=True, help="Only this machine; may be repeated.")
@click.option("--metric", multiple=True, default=["step_time"], show_default=True, help="May be repeated; all for all.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Only releases uploaded from this day on.")
@click.option("--threshold", default=judge.THRESHOLD, show_default=True, type=SHARE, help="Smallest change to show.")
@click.option("--json", "as_json", is_flag=True, help="Everything about every change, as JSON.")
def regressions(library, stack, task, machine, metric, since, threshold, as_json):
    """Say at which releases what was measured became slower or faster, how sure that is, and what else changed."""
    every, left_out = series.load(ROOT, releases.History.load(), load())
    wanted = [] if "all" in metric else list(metric)
    parts = [("library", library), ("column", stack), ("task", task), ("machine", machine), ("metric", wanted)]
    some = changed.chosen(every, {name: list(asked) for name, asked in parts})
    found, more = changed.find(some, threshold)
    if since:
        found = changed.since(found, since.date())
    for sentence in [*left_out, *more]:
        click.echo(f"stepline: {sentence}", err=True)
    if as_json:
        click.echo(json.dumps([finding.as_data() for finding in found], indent=1))
        return
    for line in report.histories(some, found):
        click.echo(line)


@main.command()
@click.option("--stack", multiple=True, help="Only this stack; may be repeated.")
@click.option("--task", multiple=True, help="Only this task; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Everything that the processes say, as JSON.")
def work(stack, task, as_json):
    """Say what one step of each task is on each stack, at tiny and the reference releases: whether it is the same work.

    Parameters, inputs, precision, optimizer, new tokens, and the FLOPs of a forward pass by each framework's counter.
    """
    chosen, runner = stacks_named(stack), measuring.Bench(ROOT, {})
    with Progress(Console(stderr=True, highlight=False, soft_wrap=True)) as progress:
        every: list[same_work.Work] = []
        for one in chosen:
            progress.now(f"installing {one.name}")
            runner.install(one, releases.History.load().one(releases.REFERENCE))
            progress.now(f"building the tasks of {one.name}")
            every += same_work.collect(runner, [one], list(task))
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(one) for one in every], indent=1))
        return
    for line in same_work.report(every):
        click.echo(line)


@main.command()
def site():
    """Publish the results as asv's site, under html/."""
    click.echo(f"published in {pages.publish(ROOT).relative_to(ROOT)}/")


@main.command()
def doctor():
    """Say what this machine can run, and what is missing."""
    checks = machine_doctor.examine(ROOT, list(load().values()))
    for check in checks:
        click.echo(f"{check.what}: {check.found}" + (f"  <- {check.advice}" if check.advice else ""))
    sys.exit(1 if any(check.advice for check in checks) else 0)
