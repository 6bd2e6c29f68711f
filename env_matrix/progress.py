"""Show long work: a live line on a terminal, plain lines elsewhere."""

import contextlib
import time

from rich.console import Console
from rich.status import Status


class Progress(contextlib.AbstractContextManager):
    """Which cell of how many, what is running now, and about how long the rest will take."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.status: Status | None = None
        self.finished = 0
        self.total = 0
        self.started = time.monotonic()

    def __enter__(self):
        if self.console.is_terminal:
            self.status = self.console.status("starting")
            self.status.start()
        return self

    def __exit__(self, *exc):
        if self.status:
            self.status.stop()

    def expect(self, cells: int) -> None:
        """So many cells are still to come."""
        self.total = self.finished + cells

    def now(self, label: str) -> None:
        text = f"{label}{self.where()}"
        if self.status:
            self.status.update(text)
        else:
            self.line(f"... {text}")

    def where(self) -> str:
        if not self.total:
            return ""
        mean = (time.monotonic() - self.started) / self.finished if self.finished else 0
        left = f", about {mean * (self.total - self.finished) / 60:.0f} min left" if self.finished else ""
        return f" (cell {self.finished + 1} of {self.total}{left})"

    def finish(self, label: str, said: str, seconds: float) -> None:
        self.finished += 1
        self.line(f"[{self.finished}/{self.total}] {label}: {said}, in {seconds:.0f} s")

    def line(self, text: str) -> None:
        self.console.print(text, markup=False)
