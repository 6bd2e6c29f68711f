"""What a benchmark process says about itself beside the time of a step: cold metrics, memory, counts, a canary.

One process gives all of them. The plugin files each as the result of the `track_` benchmark of its name.
"""

import hashlib
import os
import pathlib
import resource
import statistics
import sys
import time

# Name of the metric to its unit on the site. Those of NOISELESS are the same in every process of one cell.
METRICS = {
    "import_time": "s",  # importing the task's libraries in a process that has imported nothing yet
    "imported_modules": "modules",  # added to sys.modules by that
    "build_time": "s",  # from there until model, data and loop are ready
    "build_memory": "MB",  # resident memory that building adds, the code of the model's classes being loaded already
    "first_step": "s",  # the first short loop, compilation included
    "peak_memory": "MB",  # device memory on an accelerator, else resident memory
    "memory_growth": "MB/100 steps",  # of resident memory, from the first sample to the last
    "step_drift": "%",  # change of the step time from the first half of a process' samples to the second
    "operators": "operators/step",  # that PyTorch dispatches, where PyTorch runs eagerly
    "flops": "MFLOP/step",  # that PyTorch's counter sees in them; it counts matrix products and convolutions
    "graphs": "graphs",  # compiled by torch.compile until the first step was done
    "graph_breaks": "breaks",
    "recompilations": "recompilations",
}
NOISELESS = ("imported_modules", "operators", "flops", "graphs", "graph_breaks", "recompilations")
MEGA = 1e6
CANARY_ROUNDS, CANARY_BYTES = 100_000, bytes(4_000_000)


def canary():
    """Time a fixed piece of work that no library touches, in seconds: interpreted arithmetic, and a digest of 4 MB."""
    begin = time.perf_counter()
    total = 0
    for number in range(CANARY_ROUNDS):
        total += number * number % 7
    hashlib.sha256(CANARY_BYTES).digest()
    return time.perf_counter() - begin


def load():
    """The load average of the last minute; None where the system has none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def resident():
    """Resident memory of this process, in bytes; None where /proc is not there."""
    try:
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return None


def peak():
    """The most memory that this process has held so far, in bytes: on an NVIDIA device where a framework that is
    loaded uses one, else resident."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return torch.cuda.max_memory_allocated()
    if jax is not None and hasattr(jax, "local_devices") and jax.default_backend() == "gpu":
        return jax.local_devices()[0].memory_stats()["peak_bytes_in_use"]
    try:
        status = pathlib.Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    # Not getrusage: Linux hands its figure on from the process that started this one.
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def added(before, after):
    """Megabytes between two readings of resident(); None where one is."""
    return None if before is None or after is None else (after - before) / MEGA


def drift(samples):
    """Change from the median of the first half of the samples to that of the second, in %; None below four."""
    if len(samples) < 4:
        return None
    half = len(samples) // 2
    return (statistics.median(samples[-half:]) / statistics.median(samples[:half]) - 1) * 100


def dispatched(run, short):
    """Operators that PyTorch dispatches in one step of `run`, and the MFLOPs of those it can count.

    Marginal as the time of a step is: those of short + 1 steps less those of short.
    """
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.calls += 1
            return function(*args, **(kwargs or {}))

    def counted(steps):
        with FlopCounterMode(display=False) as flops, Count() as count:
            run(steps)
        return count.calls, flops.get_total_flops()

    calls, flops = counted(short)
    more_calls, more_flops = counted(short + 1)
    return {"operators": more_calls - calls, "flops": (more_flops - flops) / MEGA}


def compiled():
    """What torch.compile has done in this process: graphs, graph breaks, recompilations."""
    from torch._dynamo import utils

    ids = [str(getattr(metrics, "compile_id", "")) for metrics in utils.get_compilation_metrics()]
    return {
        "graphs": utils.counters["stats"]["unique_graphs"],
        "graph_breaks": sum(utils.counters["graph_break"].values()),
        # A compile id ends in /0 the first time a frame is compiled, then /1, /2 ...
        "recompilations": len({one for one in ids if "/" in one and not one.endswith("/0")}),
    }


def shapes(arrays):
    """Name to shape and dtype of arrays of any framework, as text: 4x128 int32."""
    return {
        name: f"{'x'.join(map(str, array.shape))} {str(array.dtype).removeprefix('torch.')}"
        for name, array in arrays.items()
    }


def torch_flops(function):
    """Floating-point operations of a call, by PyTorch's counter: those of matrix products, convolutions, attention."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

    def attention(query, key, value, *rest, **more):
        return sdpa_flop_count(query, key, value)

    # The counter knows fused attention on a GPU only.
    on_cpu = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: attention}
    with FlopCounterMode(display=False, custom_mapping=on_cpu) as flops:
        function()
    return flops.get_total_flops()


def jax_flops(function, *arguments):
    """Floating-point operations of a call, by XLA's cost analysis before it is optimized: every operator's."""
    import jax

    cost = jax.jit(function).lower(*arguments).cost_analysis()
    return (cost[0] if isinstance(cost, list) else cost)["flops"]


def tensorflow_flops(function):
    """Floating-point operations of a call, by TensorFlow's profiler: of the operators that it has a formula for."""
    import tensorflow as tf

    graph = tf.function(function).get_concrete_function().graph
    options = {**tf.compat.v1.profiler.ProfileOptionBuilder.float_operation(), "output": "none"}
    return tf.compat.v1.profiler.profile(graph=graph, cmd="op", options=options).total_float_ops
