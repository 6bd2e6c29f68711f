"""Our time a step against a bare loop of the same calls, written by hand, for one cell of each stack.

    .venv/bin/python scripts/baseline.py [STACK ...]

For every stack a process of its own environment builds the model once, then takes turns: a sample through
`Cell.sample`, and a bare loop over the same model that calls the framework N times and divides by N, which is
what somebody would write by hand. Prints medians in ms a step, and the median of the ratios of the pairs.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

from env_matrix import bench, releases, stacks

ROOT = pathlib.Path(__file__).parent.parent
PAIRS = 15
BARE_STEPS = 100

INSIDE = """
import json, os, statistics, sys, time
from benchmarks import keras_stack, native_torch, protocol
from benchmarks.segment_anything import Fit

taken = {}

def plain_fit(module, inputs, target, mode):
    taken.update(module=module, inputs=inputs, target=target)
    return original_plain_fit(module, inputs, target, mode)

def keras_fit(model, inputs, target, loss, optimizer):
    taken.update(model=model, inputs=inputs, target=target)
    return original_keras_fit(model, inputs, target, loss, optimizer)

original_plain_fit, native_torch.plain_fit = native_torch.plain_fit, plain_fit
original_keras_fit, keras_stack.fit = keras_stack.fit, keras_fit
cell = Fit()
cell.setup("tiny")

if "module" in taken:
    import torch
    module, inputs, target = taken["module"], taken["inputs"], taken["target"]
    adam = torch.optim.Adam(module.parameters())
    forward = torch.compile(module, mode="reduce-overhead") if os.environ["STEPLINE_MODE"] == "compiled" else module

    def bare(steps):
        for _ in range(steps):
            adam.zero_grad()
            loss = torch.nn.functional.mse_loss(forward(inputs), target)
            loss.backward()
            adam.step()
else:
    import tensorflow as tf
    quiet = tf.data.Options()
    quiet.autotune.enabled = False
    batch = tf.data.Dataset.from_tensors((taken["inputs"], taken["target"]))

    def bare(steps):
        taken["model"].fit(batch.repeat(steps).with_options(quiet), verbose=0)

bare(5)
ours, theirs = [], []
for turn in range({pairs}):
    for who in ((0, 1) if turn % 2 else (1, 0)):
        if who:
            before = cell.timer()
            cell.sample()
            ours.append(cell.timer() - before)
        else:
            begin = time.perf_counter()
            bare({steps})
            theirs.append((time.perf_counter() - begin) / {steps})
print("baseline: " + json.dumps([ours, theirs]))
"""


def main(wanted):
    runner = bench.Bench(ROOT, {})
    reference = releases.History.load().one(releases.REFERENCE)
    print(f"segment_anything fit, tiny, {PAIRS} interleaved pairs; a bare loop is {BARE_STEPS} steps")
    for stack in stacks.load().values():
        if wanted and stack.name not in wanted:
            continue
        runner.install(stack, reference)
        for mode in stack.modes:
            variables = {**os.environ, "STEPLINE_STACK": stack.name, "STEPLINE_MODE": mode or "eager"}
            said = subprocess.run(
                [runner.python(stack), "-c", INSIDE.replace("{pairs}", str(PAIRS)).replace("{steps}", str(BARE_STEPS))],
                cwd=ROOT,
                env=variables,
                capture_output=True,
                text=True,
                check=False,
            )
            line = [line for line in said.stdout.splitlines() if line.startswith("baseline: ")]
            if not line:
                print(f"{stack.name} {mode or ''}: failed: {said.stderr.strip().splitlines()[-1]}")
                continue
            ours, bare = json.loads(line[0].removeprefix("baseline: "))
            ratio = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
            print(
                f"{stack.name} {mode or '':8} ours {statistics.median(ours) * 1e3:7.3f} ms/step,"
                f" bare {statistics.median(bare) * 1e3:7.3f} ms/step, ratio {ratio:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
