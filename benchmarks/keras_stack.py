"""Keras 2 and Keras 3 on every backend: model.fit, model.predict and generate at their defaults.

Builders live with their model; what several models share is here. XLA (jit_compile) is on for TensorFlow and
JAX and off for torch, as in the study, and always passed: what "auto" means has changed between releases.
"""

import importlib
import os

from . import evidence
from .protocol import SEED, Workload, import_library


def keras(size):
    """Import Keras with the task's precision as its dtype policy, and check that both are what was asked.

    Raises RuntimeError when Keras runs on another backend than the stack names.
    """
    keras = importlib.import_module("keras")
    keras.utils.set_random_seed(SEED)
    wanted = os.environ["KERAS_BACKEND"]
    if hasattr(keras, "config"):  # Keras 3
        if keras.backend.backend() != wanted:
            raise RuntimeError(f"Keras runs on {keras.backend.backend()}, not on {wanted}")
        keras.config.set_dtype_policy(size["dtype"])
    else:
        keras.mixed_precision.set_global_policy(size["dtype"])
    return keras


def hub():
    """KerasHub, or KerasNLP as it was called before."""
    return import_library("keras_hub")


def jit():
    return os.environ["KERAS_BACKEND"] != "torch"


def adamw():
    return importlib.import_module("keras").optimizers.AdamW()


def count(weights):
    """Number of elements of a list of Keras weights."""
    total = 0
    for weight in weights:
        elements = 1
        for length in weight.shape:
            elements *= int(length)
        total += elements
    return total


def batches(*tensors):
    """The function from a number of steps to a tf.data set that repeats one batch that often, without copies."""
    import tensorflow as tf

    if os.environ["KERAS_BACKEND"] != "tensorflow":
        tf.config.set_visible_devices([], "GPU")  # here TensorFlow only feeds data
    options = tf.data.Options()
    # tf.data's tuner sleeps 10, 20, 40 ... ms and an iterator's end waits for it: calls would last powers of two.
    options.autotune.enabled = False
    one = tf.data.Dataset.from_tensors(tensors if len(tensors) > 1 else tensors[0]).cache()
    return lambda steps: one.repeat(steps).with_options(options)


def dtypes(model):
    """The dtypes of a model's weights, as sorted names."""
    return sorted({str(getattr(weight.dtype, "name", weight.dtype)) for weight in model.weights})


def workload(run, model, **facts):
    keras = importlib.import_module("keras")
    policy = keras.config.dtype_policy() if hasattr(keras, "config") else keras.mixed_precision.global_policy()
    torch = os.environ["KERAS_BACKEND"] == "torch"
    return Workload(
        run=run,
        parameters=count(model.weights),
        trainable=count(model.trainable_weights),
        facts={**facts, "dtypes": dtypes(model), "dtype_policy": policy.name, "jit_compile": jit()},
        counted=lambda short: evidence.dispatched(run, short) if torch else {},
    )


def forward_flops(model, inputs):
    """Floating-point operations of a model's forward pass, by the counter of its backend; inputs are NumPy arrays."""
    import numpy as np

    backend = os.environ["KERAS_BACKEND"]
    if backend == "jax":
        state = [
            [weight.value for weight in part] for part in (model.trainable_variables, model.non_trainable_variables)
        ]
        return evidence.jax_flops(lambda *weights: model.stateless_call(*weights, inputs)[0], *state)
    if backend == "tensorflow":
        return evidence.tensorflow_flops(lambda: model(inputs))
    import torch

    def tensor(value):
        return torch.as_tensor(np.asarray(value))

    if isinstance(inputs, dict):
        given = {name: tensor(value) for name, value in inputs.items()}
    else:
        given = [tensor(value) for value in inputs] if isinstance(inputs, list) else tensor(inputs)
    return evidence.torch_flops(lambda: model(given))


def works_on(done, model, inputs, target=None):
    """Say what one step of a workload is given, and count the FLOPs of its forward pass."""
    named = inputs if isinstance(inputs, dict) else {"images": inputs}
    done.inputs = evidence.shapes({**named, **({} if target is None else {"target": target})})
    done.forward_flops = lambda: forward_flops(model, inputs)
    return done


def fit(model, inputs, target, loss, optimizer):
    """model.fit on batches already in memory. The loss is read at the end of fit, so the device has finished."""
    model.compile(loss=loss, optimizer=optimizer, jit_compile=jit())
    data = batches(inputs, target)

    def run(steps):
        model.fit(data(steps), verbose=0)

    done = workload(run, model, optimizer=type(optimizer).__name__, loop="model.fit")
    return works_on(done, model, inputs, target)


def predict(model, inputs):
    """model.predict on batches already in memory. Its outputs are NumPy arrays, so the device has finished."""
    model.compile(jit_compile=jit())
    data = batches(inputs)

    def run(steps):
        model.predict(data(steps), verbose=0)

    return works_on(workload(run, model, loop="model.predict"), model, inputs)


def generate(model, batch, prompt, new_tokens, vocabulary):
    """Greedy generation of exactly `new_tokens`; one call is one step."""
    import numpy as np

    total = prompt + new_tokens
    ids = np.random.default_rng(SEED).integers(1, vocabulary, (batch, total), dtype="int32")
    mask = np.zeros((batch, total), "int32")
    mask[:, :prompt] = 1
    model.compile(sampler="greedy", jit_compile=jit())
    options = exact_length(model)
    made = None

    def run(steps):
        nonlocal made
        for _ in range(steps):
            made = model.generate({"token_ids": ids, "padding_mask": mask}, **options)

    done = workload(run, model, loop="generate")
    # The filler after the prompt is random: what differs from it, or is marked as text, was generated.
    done.new_tokens = lambda: int(np.asarray(made["padding_mask"]).sum(axis=1).min()) - prompt
    done.inputs = evidence.shapes({"prompt": ids[:, :prompt]})
    done.forward_flops = lambda: forward_flops(model, {"token_ids": ids, "padding_mask": np.ones_like(mask)})
    return done


def exact_length(model):
    """Options that switch end-of-sequence off; without a preprocessor KerasNLP 0.8 has no stop token at all."""
    import inspect

    return {"stop_token_ids": None} if "stop_token_ids" in inspect.signature(model.generate).parameters else {}
