"""The command line: what asv cannot express."""

import errno
import signal
import sys

import click

from . import bench as matrix
from . import lock as locks
from . import site as pages
from .errors import UserError
from .progress import Progress
from .stacks import ROOT, choose, load


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


@main.command()
@click.option("--stack", multiple=True, help="A stack of stacks.toml; may be repeated. All without it.")
@click.option("--task", multiple=True, help="A task such as bert-fit or gemma-generate-32; may be repeated.")
@click.option("--scale", default="tiny", show_default=True, help="tiny, or paper for the published sizes.")
@click.option("--quick", is_flag=True, help="One sample a cell.")
@click.option("--verbose", is_flag=True, help="Show all that asv says.")
def bench(stack, task, scale, quick, verbose):
    """Install every stack, measure every cell, publish the site."""
    every = load()
    chosen = [every[name] for name in choose(list(stack), list(every), "stack")]
    attributes = matrix.quick() if quick else {}
    with Progress() as progress:
        failures = matrix.run(matrix.Bench(ROOT, attributes, verbose), chosen, list(task), scale, progress)
    sys.exit(matrix.exit_code(failures))


@main.command()
@click.option("--stack", multiple=True, help="A stack of stacks.toml; may be repeated. All without it.")
@click.option("--check", is_flag=True, help="Only read the locks; needs no network.")
def lock(stack, check):
    """Make the locks anew from stacks.toml, each as of its day."""
    every = load()
    for name in choose(list(stack), list(every), "stack"):
        if check:
            pins = locks.read(every[name].lock)
            locks.check(every[name], pins)
        else:
            pins = locks.resolve(every[name])
            locks.write(every[name], pins)
        click.echo(f"{name}: {len(pins)} packages")


@main.command()
def site():
    """Publish the results as asv's site, under html/."""
    click.echo(f"published in {pages.publish(ROOT).relative_to(ROOT)}/")
