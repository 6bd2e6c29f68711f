"""How every cell is measured: build, first step, warm-up, then samples of the time of one step.

A sample is the *marginal* time of a step, the arithmetic of the published study: the loop is run for `short`
steps and for `short + steps`, and the difference is divided by `steps`. What one call of `fit`, `predict`,
`Trainer.train` or the pipeline costs whatever its length (callbacks, iterators, text encoding, decoding)
cancels out, and the device has finished at every reading of the clock.
"""

import abc
import atexit
import dataclasses
import importlib
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from . import evidence

SIZES = json.loads((pathlib.Path(__file__).parent / "sizes.json").read_text())
SEED = 0
WARM_UP_CALLS = 2  # calls of the long loop before the first sample


@dataclasses.dataclass
class Workload:
    """One task built on one stack.

    Attributes:
        run: makes n steps through the framework's own loop; returns when the device has finished.
        parameters: number of parameters of the model, shared ones counted once.
        trainable: number of parameters that a fit step updates.
        facts: what was really run (optimizer, loop, dtype), for the reader and the tests.
        after_first: called after the first step; raises if the cell is not what its column says.
        new_tokens: number of tokens that the last generate call added, where there is one.
        counted: from the length of the short loop to what can be counted in a step; see evidence.METRICS.
        inputs: name to shape and dtype of what one step is given.
        forward_flops: floating-point operations of the model's forward pass in one step, by the framework's counter.
    """

    run: Callable[[int], None]
    parameters: int
    trainable: int
    facts: dict[str, object]
    after_first: Callable[[], None] = lambda: None
    new_tokens: Callable[[], int] | None = None
    counted: Callable[[int], dict[str, float]] = lambda short: {}
    inputs: dict[str, str] = dataclasses.field(default_factory=dict)
    forward_flops: Callable[[], float] | None = None


class Rows:
    """A map-style data set: `length` copies of one example, so that no step waits for data."""

    def __init__(self, row, length):
        self.row = row
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.row


class StepClock:
    """asv's timer: reads the time of one step, in seconds, of everything timed so far."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds

    def time(self, run, steps, short=1):
        """Advance by the marginal time of one step of `run`, in seconds.

        Raises RuntimeError when the longer loop was not the slower one: no step time can be told from that.
        """
        begin = time.perf_counter()
        run(short)
        middle = time.perf_counter()
        run(short + steps)
        seconds = (time.perf_counter() - middle) - (middle - begin)
        if seconds <= 0:
            raise RuntimeError(f"{short + steps} steps were not slower than {short}: the machine is too noisy")
        self.seconds += seconds / steps


class Cell(abc.ABC):
    """Base of the asv classes: a task of one model at a scale.

    A subclass names its `model` and `task` (keys of sizes.json), builds a Workload in `native` and in `keras`, and
    has a `time_step`; without one it is abstract, and no benchmark to asv.
    asv calls `setup` before every sample; the workload is built in the first call of a process and kept.
    """

    model: str
    task: str
    native_imports: tuple[str, ...] = ()  # "module" or "module:Class", what `native` uses of its libraries
    keras_imports: tuple[str, ...] = ()  # likewise; "keras_hub" is KerasNLP where that is what there is
    params: list = [list(SIZES["scales"])]
    param_names = ["scale"]
    timeout = 1800
    number = 1
    repeat = (4, 10, 30.0)  # at least four samples, at most ten, no more of them after half a minute
    rounds = 1
    warmup_time = 0
    version = "1"
    workload: Workload | None = None

    @abc.abstractmethod
    def time_step(self, scale, batch=None):
        """One sample; asv times it."""

    def setup(self, scale, batch=None):
        if self.workload is None:
            self.prepare(scale, batch)

    def prepare(self, scale, batch=None):
        """Build, take the first step and warm up; report what each took, and what was built."""
        self.metrics: dict[str, float | None] = {}
        self.conditions = {"load_before": evidence.load()}
        self.canaries = [evidence.canary()]
        workload = self.build(scale, batch)
        built = time.perf_counter()
        workload.run(self.loop["short"])
        self.metrics["first_step"] = time.perf_counter() - built
        workload.after_first()
        self.count(workload)
        began = time.perf_counter()
        for _ in range(WARM_UP_CALLS):
            workload.run(self.loop["short"] + self.loop["steps"])
        self.conditions["warm_up_s"] = time.perf_counter() - began
        if workload.new_tokens:
            workload.facts["new_tokens"] = workload.new_tokens()
        self.timer = StepClock()
        self.samples: list[float] = []
        self.warm_memory = evidence.resident()
        self.workload = workload
        self.report()

    def build(self, scale, batch=None):
        """Build the workload on the stack that STEPLINE_STACK names, in the mode that STEPLINE_MODE names.

        Raises NotImplementedError, with the reason, where the cell does not apply here.
        """
        size = {**SIZES["models"][self.model][scale], **SIZES["models"][self.model][scale][self.task]}
        if batch is not None:
            size["batch"] = batch
        self.loop = {"steps": size["steps"], "short": size.get("short", 1)}
        refuse_where_not_concerned()
        refuse_without_accelerator(scale)
        family, _, backend = os.environ["STEPLINE_STACK"].partition("-")
        threads = SIZES["scales"][scale]["threads"]
        isolate(backend, threads)
        loaded, began = len(sys.modules), time.perf_counter()
        self.load(self.native_imports if family == "native" else self.keras_imports)
        imported = time.perf_counter()
        modules = len(sys.modules) - loaded
        self.load_classes(self.native_imports if family == "native" else self.keras_imports)
        seed(backend, threads)
        before = evidence.resident()
        if family == "native":
            workload = self.native(size, os.environ.get("STEPLINE_MODE", "eager"))
        else:
            workload = self.keras(size, family)
        self.metrics = {
            "import_time": imported - began,
            "imported_modules": modules,
            "build_time": time.perf_counter() - imported,
            "build_memory": evidence.added(before, evidence.resident()),
        }
        return workload

    def count(self, workload):
        """Count what can be counted; a framework that does not bear the counter is measured without."""
        try:
            self.metrics.update(workload.counted(self.loop["short"]))
        except Exception as error:  # whatever a framework raises under the counter is no failure of the cell
            self.conditions["not_counted"] = f"{type(error).__name__}: {error}"[:300]

    def load(self, imports):
        """Import the modules of `imports`, in their order."""
        for name in imports:
            import_library(name.partition(":")[0])

    def load_classes(self, imports):
        """Load the classes of `imports`, which libraries import lazily; a release that lacks one is n/a later."""
        for name in imports:
            module, _, member = name.partition(":")
            if member:
                getattr(sys.modules[module], member, None)

    def sample(self):
        """Take one sample; every class calls this in its `time_step`."""
        before = self.timer()
        self.timer.time(self.workload.run, **self.loop)
        self.samples.append(self.timer() - before)
        self.canaries.append(evidence.canary())
        calls = 2 * self.loop["short"] + self.loop["steps"]
        if len(self.samples) > 1 and (grown := evidence.added(self.warm_memory, evidence.resident())) is not None:
            self.metrics["memory_growth"] = grown / (len(self.samples) * calls) * 100
        self.metrics["step_drift"] = evidence.drift(self.samples)
        self.report()

    def report(self):
        """Print all that this process knows of itself so far, in one line; the last one counts."""
        self.metrics["peak_memory"] = evidence.peak() / evidence.MEGA
        self.conditions.update(canary_s=statistics.median(self.canaries), load_after=evidence.load())
        said = {
            "parameters": self.workload.parameters,
            "trainable": self.workload.trainable,
            "facts": self.workload.facts,
            "metrics": {name: value for name, value in self.metrics.items() if value is not None},
            "conditions": self.conditions,
        }
        print(f"stepline: {json.dumps(said)}", flush=True)

    def native(self, size, mode):
        """Build on native PyTorch; `mode` is eager or compiled."""
        raise NotImplementedError(f"{self.model} {self.task} is not written for native PyTorch")

    def keras(self, size, family):
        """Build on Keras; `family` is keras2 or keras3."""
        raise NotImplementedError(f"{self.model} {self.task} is not written for Keras")


def _track(metric):
    """The asv benchmark that tracks one metric. The plugin fills it from the processes of `time_step`; on its own it
    measures in a process of its own."""

    def track(self, *parameters):
        if metric in ("memory_growth", "step_drift"):
            for _ in range(4):
                self.sample()
        value = self.metrics.get(metric)
        return math.nan if value is None else value

    track.unit = evidence.METRICS[metric]
    track.__name__ = f"track_{metric}"
    track.pretty_source = f"Reported by the process of time_step as {metric!r}, in {track.unit}."
    return track


for _metric in evidence.METRICS:
    setattr(Cell, f"track_{_metric}", _track(_metric))


def import_library(name):
    """Import a module; KerasHub was KerasNLP before it had its name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        if name != "keras_hub":
            raise
        return importlib.import_module("keras_nlp")


def refuse_where_not_concerned():
    """Raise NotImplementedError (asv's n/a) where the release is none of this stack: the installer left a note."""
    note = pathlib.Path(sys.prefix) / "stepline-na.txt"
    if note.exists():
        raise NotImplementedError(note.read_text().strip())


def refuse_without_accelerator(scale):
    """Raise NotImplementedError (asv's n/a) where the scale needs an accelerator that is not there."""
    needed = SIZES["scales"][scale]["accelerator_gb"]
    found = accelerator_gb() if needed else 0
    if found < needed:
        raise NotImplementedError(
            f"the {scale} scale needs an accelerator with {needed} GB of memory; this machine has {found:.0f} GB"
        )


def accelerator_gb():
    """Memory of the first NVIDIA accelerator in GB, 0 without one; asked of the driver, before any framework."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0.0
    ask = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits", "--id=0"]
    said = subprocess.run(ask, capture_output=True, text=True, timeout=60, check=False)
    return int(said.stdout) / 1000 if said.returncode == 0 else 0.0


def isolate(backend, threads):
    """State the conditions of this process before a framework is imported.

    Seeds, thread counts (None leaves the frameworks' own choice), offline switches, no telemetry, and a folder
    for caches that ends with the process, so that neither a user's settings nor an earlier run has a say.
    """
    scratch = tempfile.mkdtemp(prefix="stepline-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    settings = {
        "KERAS_BACKEND": backend,
        "KERAS_HOME": f"{scratch}/keras",
        "HF_HOME": f"{scratch}/huggingface",
        "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    if threads is not None:
        for name in ("OMP", "MKL", "OPENBLAS", "TF_NUM_INTRAOP", "TF_NUM_INTEROP"):
            settings[f"{name}_NUM_THREADS" if "TF" not in name else f"{name}_THREADS"] = str(threads)
        settings["NPROC"] = str(threads)  # XLA's CPU client sizes its pool by it
        if threads == 1:
            flags = os.environ.get("XLA_FLAGS", "")
            settings["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    os.environ.update(settings)


def seed(backend, threads):
    """Seed what draws numbers, and limit torch's threads; Keras is seeded where it is built."""
    random.seed(SEED)
    if backend == "torch":
        import torch

        torch.manual_seed(SEED)
        if threads is not None:
            torch.set_num_threads(threads)
