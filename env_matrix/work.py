"""What one step of each task is on each stack: whether all of them do the same work, and why not where they do not."""

import dataclasses
import json
import os
import pathlib
import subprocess
import tomllib
from collections.abc import Iterator

from .bench import Bench
from .errors import UserError
from .stacks import HERE, Stack

BASIS = "native-torch-eager"  # the column that FLOPs are compared with
NOTES = HERE / "work.toml"


@dataclasses.dataclass(frozen=True)
class Work:
    """What a task is on one column; `said` is what benchmarks/describe.py prints of it."""

    column: str
    task: str
    said: dict

    @property
    def measured(self) -> bool:
        return self.said["state"] == "measured"

    def fact(self, name: str) -> str:
        value = self.said["facts"].get(name, "")
        return ", ".join(value) if isinstance(value, list) else str(value)


def describe(python: pathlib.Path, root: pathlib.Path, stack: Stack, mode: str | None, tasks: list[str]) -> list[Work]:
    """Build and step the tasks (all without any) of a column in its environment; one process, nothing is timed.

    Raises UserError when the process ended before the last task.
    """
    chosen = {"STEPLINE_STACK": stack.name, **({"STEPLINE_MODE": mode} if mode else {})}
    said = subprocess.run(
        [python, "-m", "benchmarks.describe", *tasks],
        cwd=root,
        env={**os.environ, **chosen},
        capture_output=True,
        text=True,
        check=False,
    )
    column = f"{stack.name}-{mode}" if mode else stack.name
    found = [json.loads(line) for line in said.stdout.splitlines() if line.startswith('{"task"')]
    if said.returncode:
        last = (said.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise UserError(f"{column} ended after {len(found)} tasks: {last}")
    return [Work(column, one.pop("task"), one) for one in found]


def collect(bench: Bench, stacks: list[Stack], tasks: list[str]) -> Iterator[Work]:
    """Describe the tasks on every column of stacks whose environments are installed."""
    for stack in stacks:
        for mode in stack.modes:
            yield from describe(bench.python(stack), bench.root, stack, mode, tasks)


COLUMNS = ("parameters", "trainable", "inputs", "dtypes", "optimizer", "new tokens", "forward MFLOP", "of native eager")


def rows(every: list[Work]) -> list[list[str]]:
    """A row a column of one task, under "stack" and COLUMNS; FLOPs as a share of those of BASIS, too."""
    basis = next((one.said["forward_flops"] for one in every if one.column == BASIS and one.measured), None)
    found = []
    for one in every:
        if not one.measured:
            found.append([one.column, f"{one.said['state']}: {one.said['reason']}"])
            continue
        flops = one.said["forward_flops"]
        found.append(
            [
                one.column,
                f"{one.said['parameters']:,}",
                f"{one.said['trainable']:,}" if "optimizer" in one.said["facts"] else "none",
                "; ".join(f"{name} {shape}" for name, shape in one.said["inputs"].items()),
                one.fact("dtypes"),
                one.fact("optimizer"),
                one.fact("new_tokens"),
                f"{flops / 1e6:.4g}",
                f"{flops / basis:.3f}" if basis else "",
            ]
        )
    return found


def report(every: list[Work]) -> Iterator[str]:
    """A table a task, as Markdown, and why columns differ where they do."""
    for task in dict.fromkeys(one.task for one in every):
        yield f"\n### {task}\n"
        heads = ("stack", *COLUMNS)
        yield "| " + " | ".join(heads) + " |"
        yield "|" + " --- |" * len(heads)
        for row in rows([one for one in every if one.task == task]):
            yield "| " + " | ".join([*row, *[""] * (len(heads) - len(row))]) + " |"
    yield "\n### Where they differ\n"
    for note in notes():
        yield f"- **{note['what']}** ({note['where']}): {note['why']}"


def notes() -> list[dict[str, str]]:
    """The differences that are known: what differs, where, and why."""
    return tomllib.loads(NOTES.read_text())["difference"]
