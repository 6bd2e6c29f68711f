"""Build cells in one process, take two steps of each, and print a line of JSON a cell: what was really built.

Run in a stack's environment, with STEPLINE_STACK (and STEPLINE_MODE) set, from the folder above this one:
    python -m benchmarks.describe [TASK ...]        for instance bert-fit gemma-generate-32
"""

import importlib
import inspect
import itertools
import json
import sys
import traceback

from .protocol import SIZES, Cell


def cells(scale):
    """Every task of every model at one scale: (name, cell, its parameters)."""
    for model in SIZES["models"]:
        module = importlib.import_module(f".{model}", __package__)
        for name, member in sorted(inspect.getmembers(module, inspect.isclass)):
            if issubclass(member, Cell) and not inspect.isabstract(member):
                for parameters in itertools.product([scale], *member.params[1:]):
                    batch = [str(p) for p in parameters[1:]]
                    yield "-".join([model, name.lower(), *batch]), member(), parameters


def describe(cell, parameters):
    """What one cell is once built and stepped; its state is measured, n/a or failed, as asv would have it."""
    try:
        workload = cell.build(*parameters)
        workload.run(2)
        workload.after_first()
        if workload.new_tokens:
            workload.facts["new_tokens"] = workload.new_tokens()
    except NotImplementedError as error:
        return {"state": "n/a", "reason": str(error)}
    except Exception as error:  # whatever a framework raises is this cell's result, not the end of the others
        traceback.print_exc()
        return {"state": "failed", "reason": f"{type(error).__name__}: {error}"}
    return {
        "state": "measured",
        "parameters": workload.parameters,
        "trainable": workload.trainable,
        "facts": workload.facts,
        "inputs": workload.inputs,
        "forward_flops": workload.forward_flops(),
    }


def main(wanted):
    for name, cell, parameters in cells("tiny"):
        if not wanted or name in wanted:
            print(json.dumps({"task": name, **describe(cell, parameters)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
