"""Every workload on its own stack, in the environments that asv uses: built, stepped and counted at tiny."""

import functools
import pathlib
import subprocess

import pytest

from env_matrix import stacks, work

ROOT = pathlib.Path(__file__).parent.parent.parent
STACKS = stacks.load()
COLUMNS = [(stack, mode) for stack in STACKS.values() for mode in stack.modes]
TASKS = [
    *("bert-fit", "bert-predict", "gemma-fit", "gemma-generate-1", "gemma-generate-32"),
    *("mistral-fit", "mistral-generate-1", "mistral-generate-32"),
    *("segment_anything-fit", "segment_anything-predict", "stable_diffusion-fit", "stable_diffusion-predict"),
]
NOT_IN_KERAS_2 = {task for task in TASKS if task.startswith(("gemma", "mistral"))}
NEW_TOKENS = 16


def run_python(python, *arguments, **kwargs):
    return subprocess.run(
        [python, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=1500, **kwargs
    )


@pytest.fixture(scope="module")
def described(environment):
    """The function from a column to what each of its tasks is, described in one process of its environment."""

    @functools.cache
    def describe(stack, mode):
        found = work.describe(environment(stack), ROOT, stack, mode, [])
        assert [one.task for one in found] == TASKS
        return {one.task: one.said for one in found}

    return describe


@pytest.mark.parametrize(("stack", "mode"), COLUMNS, ids=lambda value: getattr(value, "name", value))
def test_every_task_builds_and_steps_or_says_why_not(described, stack, mode):
    for task, cell in described(stack, mode).items():
        if stack.name == "keras2-tensorflow" and task in NOT_IN_KERAS_2:
            assert cell["state"] == "n/a"
            assert "does not exist for Keras 2" in cell["reason"]
        else:
            assert cell["state"] == "measured", f"{task}: {cell.get('reason')}"


@pytest.mark.parametrize("task", TASKS)
def test_parameter_counts_agree_across_stacks(described, task):
    counts = {
        f"{stack.name} {mode}": described(stack, mode)[task].get("parameters")
        for stack, mode in COLUMNS
        if described(stack, mode)[task]["state"] == "measured"
    }
    assert len(set(counts.values())) == 1, counts


def shape(text):
    """Lengths of a shape's axes, those that hold channels last in any order."""
    return sorted(int(length) for length in text.split()[0].split("x"))


@pytest.mark.parametrize("task", TASKS)
def test_every_stack_is_given_the_same_shapes(described, task):
    """Those that differ by nature are in env_matrix/work.toml: they are named differently, or are one image's."""
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    native = described(STACKS["native-torch"], "eager")[task]["inputs"]
    for stack, mode in COLUMNS:
        cell = described(stack, mode)[task]
        if cell["state"] == "measured":
            for name, given in cell["inputs"].items():
                wanted = native.get(names.get(name, name))
                if wanted and name != "points" and task != "stable_diffusion-predict":
                    assert shape(given) == shape(wanted), (stack.name, name)


@pytest.mark.parametrize("task", TASKS)
def test_every_stack_computes_as_much(described, task):
    """FLOPs of a forward pass. keras3-torch has native PyTorch's counter: equal, but for LoRA within 3%. The counters
    of XLA and TensorFlow count more operators: at most 20% more. env_matrix/work.toml says why, and for Einsum."""
    native = described(STACKS["native-torch"], "eager")[task]["forward_flops"]
    for stack, mode in COLUMNS:
        cell = described(stack, mode)[task]
        if cell["state"] != "measured" or (stack.name, task.partition("-")[0]) == ("keras2-tensorflow", "bert"):
            continue
        ratio = cell["forward_flops"] / native
        if stack.backend == "torch":
            tolerance = 0.03 if task in ("gemma-fit", "mistral-fit") else 0.005
            assert abs(ratio - 1) <= tolerance, (stack.name, ratio)
        else:
            assert 0.97 <= ratio <= 1.2, (stack.name, ratio)


@pytest.mark.parametrize("task", [task for task in TASKS if "generate" in task])
def test_generate_makes_exactly_the_asked_number_of_tokens(described, task):
    for stack, mode in COLUMNS:
        cell = described(stack, mode)[task]
        if cell["state"] == "measured":
            assert cell["facts"]["new_tokens"] == NEW_TOKENS, stack.name


def test_the_compiled_column_compiles(described):
    cells = described(STACKS["native-torch"], "compiled")
    assert all(cell["facts"]["compiled_graphs"] > 0 for cell in cells.values())
    assert not any("compiled_graphs" in cell["facts"] for cell in described(STACKS["native-torch"], "eager").values())


def test_precision_is_what_the_study_used(described):
    for stack, mode in COLUMNS:
        for task, cell in described(stack, mode).items():
            if cell["state"] == "measured":
                wanted = "bfloat16" if task in NOT_IN_KERAS_2 else "float32"
                assert wanted in cell["facts"]["dtypes"], (stack.name, task)
                if "generate" in task or wanted == "float32":
                    assert cell["facts"]["dtypes"] == [wanted], (stack.name, task)


def test_a_compiled_cell_that_compiles_nothing_is_an_error(environment):
    script = """
import os; os.environ["STEPLINE_STACK"] = "native-torch"
from benchmarks import native_torch, protocol
protocol.isolate("torch", 1)
import torch
done = native_torch.workload(lambda steps: None, torch.nn.Linear(2, 2), "compiled")
try:
    done.after_first()
except RuntimeError as error:
    print(error)
"""
    said = run_python(environment(STACKS["native-torch"]), "-c", script)
    assert "compiled no graph" in said.stdout, said.stderr


def test_the_torchvision_stand_in_raises_when_used_and_leaves_nothing(environment):
    script = """
import sys
from benchmarks import native_torch
with native_torch.torchvision_stand_in():
    from torchvision.ops.boxes import batched_nms
    from segment_anything.utils import amg
try:
    batched_nms()
except RuntimeError as error:
    print(error)
assert not [name for name in sys.modules if name.startswith("torchvision")]
"""
    said = run_python(environment(STACKS["native-torch"]), "-c", script)
    assert "stand-in" in said.stdout, said.stderr


PUBLISHED = """
import os; os.environ.update(STEPLINE_STACK="{stack}", KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="2")
from benchmarks import keras_diffusion, keras_stack
from benchmarks.protocol import SIZES
size = SIZES["models"]["stable_diffusion"]["paper"]
text = [size["text_" + part] for part in ("length", "vocabulary", "width", "layers", "heads")]
around = [size["image"], size["text_length"], size["text_width"]]
unet = [*around, size["unet_widths"], size["unet_blocks"], size["unet_heads"]]
encoder = keras_diffusion.image_encoder(size["vae_widths"], size["vae_blocks"], 0.18215)
decoder = keras_diffusion.decoder(size["image"], size["vae_widths"], size["vae_blocks"], 0.18215)
print(keras_stack.count(encoder.weights), keras_stack.count(decoder.weights))
print(keras_stack.count(keras_diffusion.text_encoder(*text).weights))
print(keras_stack.count(keras_diffusion.unet(*unet).weights))
"""


@pytest.mark.parametrize("name", ["keras2-tensorflow", "keras3-tensorflow"])
def test_the_assembled_stable_diffusion_is_the_published_one_at_full_width(environment, name):
    """Counts of KerasCV's own classes: ImageEncoder 34,163,664; TextEncoder 123,060,480; DiffusionModel 859,520,964."""
    said = run_python(environment(STACKS[name]), "-c", PUBLISHED.format(stack=name))
    numbers = [int(word) for word in said.stdout.split()[-4:]]
    # The autoencoder has 83,653,863: its encoder and quantiser 34,163,664, so 49,490,199 are left for the decoder.
    assert numbers == [34_163_664, 49_490_199, 123_060_480, 859_520_964], said.stderr
