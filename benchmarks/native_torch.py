"""Native PyTorch: the loops users write or call (Trainer, generate, pipeline, plain), eager and compiled.

Builders live with their model; what several models share is here. Nothing of a framework is imported
until a workload is built. Differences between library versions are bridged here, by feature.
"""

import contextlib
import importlib.machinery
import inspect
import sys
import tempfile
import types

from . import evidence
from .protocol import Rows, Workload

COMPILE_MODE = "reduce-overhead"  # the published compiled column: torch.compile(mode="reduce-overhead")


def device():
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait():
    """Return when the accelerator has finished what was asked of it."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def count(module):
    """Parameters of a torch module, shared ones once."""
    return sum(p.numel() for p in module.parameters())


def trainable(module):
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def compiled_graphs():
    """Number of graphs that torch.compile has compiled in this process."""
    import torch._dynamo.utils

    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def maybe_compile(function, mode):
    import torch

    return torch.compile(function, mode=COMPILE_MODE) if mode == "compiled" else function


def workload(run, module, mode, **facts):
    """A Workload that says how it was run, and after its first step how many graphs were compiled."""
    import torch

    config = getattr(module, "config", None)
    facts = {
        **facts,
        "mode": COMPILE_MODE if mode == "compiled" else mode,
        "dtypes": sorted({str(p.dtype).removeprefix("torch.") for p in module.parameters()}),
        "attention": getattr(config, "_attn_implementation", None) or "its own",
        "matmul_precision": torch.get_float32_matmul_precision(),
        "tf32": bool(torch.backends.cuda.matmul.allow_tf32),
    }
    before = compiled_graphs() if mode == "compiled" else 0

    def after_first():
        if mode == "compiled":
            facts["compiled_graphs"] = compiled_graphs() - before
            if not facts["compiled_graphs"]:
                raise RuntimeError("torch.compile compiled no graph for this task: its time would be the eager time")

    def counted(short):
        return evidence.compiled() if mode == "compiled" else evidence.dispatched(run, short)

    return Workload(run, count(module), trainable(module), facts, after_first, counted=counted)


def add_lora(model, rank):
    """LoRA on the query and value projections, where KerasHub's enable_lora puts it too."""
    from peft import LoraConfig, get_peft_model

    # peft 0.8 knows no default target modules for Gemma, so they are always named.
    config = LoraConfig(r=rank, lora_alpha=rank, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    return get_peft_model(model, config)


def works_on(done, forward, **inputs):
    """Say what one step of a workload is given, and count the FLOPs of its forward pass, which runs eagerly."""
    done.inputs = evidence.shapes(inputs)
    done.forward_flops = lambda: evidence.torch_flops(forward)
    return done


def of_rows(done, model, row, batch):
    """works_on() for the Trainer, which makes a batch of equal rows."""
    import torch

    inputs = {name: torch.stack([value] * batch).to(device()) for name, value in row.items()}
    return works_on(done, lambda: model(**inputs), **inputs)


def _trainer(model, batch, mode):
    from transformers import PrinterCallback, Trainer, TrainingArguments

    options = {
        "output_dir": tempfile.mkdtemp(prefix="stepline-"),
        "per_device_train_batch_size": batch,
        "per_device_eval_batch_size": batch,
        "report_to": [],  # no trackers: nothing phones home
        "save_strategy": "no",
        "logging_strategy": "no",
        "disable_tqdm": True,
        "seed": 0,
        "use_cpu": device().type == "cpu",
        "torch_compile": mode == "compiled",
        "torch_compile_mode": COMPILE_MODE if mode == "compiled" else None,
    }
    trainer = Trainer(model=model, args=TrainingArguments(**options))
    trainer.remove_callback(PrinterCallback)
    # transformers 4.48.2 passes Gemma a num_items_in_batch that it does not take.
    if "num_items_in_batch" not in inspect.signature(model.forward).parameters:
        trainer.model_accepts_loss_kwargs = False
    return trainer


def trainer_fit(model, row, batch, mode):
    """Train with transformers.Trainer at its defaults (AdamW, linear schedule, clipping at 1.0).

    `row` is one example, a dict of 1-d tensors; every batch holds `batch` copies of it.
    """
    trainer = _trainer(model, batch, mode)

    def run(steps):
        trainer.args.max_steps = steps
        trainer.train_dataset = Rows(row, steps * batch)
        trainer.train()
        wait()

    optimizer = getattr(trainer.args.optim, "value", trainer.args.optim)
    done = workload(run, model, mode, optimizer=optimizer, loop="transformers.Trainer.train")
    return of_rows(done, model, row, batch)


def trainer_predict(model, row, batch, mode):
    """Predict with transformers.Trainer.predict; outputs are gathered to the host as it does."""
    trainer = _trainer(model, batch, mode)

    def run(steps):
        trainer.predict(Rows(row, steps * batch))
        wait()

    return of_rows(workload(run, model, mode, loop="transformers.Trainer.predict"), model, row, batch)


def plain_fit(module, inputs, target, mode):
    """A plain PyTorch loop: forward, MSE, backward, Adam."""
    import torch

    where = device()
    module.to(where).train()
    inputs, target = inputs.to(where), target.to(where)
    optimizer = torch.optim.Adam(module.parameters())
    forward = maybe_compile(module, mode)

    def run(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(forward(inputs), target).backward()
            optimizer.step()
        wait()

    done = workload(run, module, mode, optimizer="Adam", loop="plain")
    return works_on(done, lambda: module(inputs), images=inputs, target=target)


def generate(model, batch, prompt, new_tokens, vocabulary, mode):
    """Greedy generation of exactly `new_tokens` by transformers' generate; one call is one step."""
    import torch

    model.to(device()).eval()
    eager = model.forward
    ids = torch.randint(1, vocabulary, (batch, prompt), device=device())
    options = {
        "attention_mask": torch.ones_like(ids),
        "do_sample": False,
        "max_new_tokens": new_tokens,
        "min_new_tokens": new_tokens,
        "eos_token_id": None,  # nothing can end a call early
        "pad_token_id": 0,
    }
    if mode == "compiled":
        # torch.compile(model).generate() compiles no graph; a compiled forward over a static cache does.
        options["cache_implementation"] = "static"
        model.forward = torch.compile(model.forward, mode=COMPILE_MODE)
    made = None
    whole = torch.ones(batch, prompt + new_tokens, dtype=ids.dtype, device=device())

    def run(steps):
        nonlocal made
        for _ in range(steps):
            made = model.generate(ids, **options)
        wait()

    done = workload(run, model, mode, loop="generate")
    done.new_tokens = lambda: made.shape[1] - prompt
    return works_on(done, lambda: eager(whole), prompt=ids)


def text_tokenizer(length):
    """A tokenizer for the pipelines made on the spot, so that none is downloaded."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<unk>": 1, "<end>": 2}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token="<unk>")),
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<end>",
        model_max_length=length,
    )


@contextlib.contextmanager
def torchvision_stand_in():
    """segment-anything imports torchvision for helpers that no timed step calls; where torchvision does not load,
    a stand-in that raises when used takes its place for the length of the import."""
    try:
        import torchvision  # noqa: F401

        yield
        return
    except (ImportError, RuntimeError):  # RuntimeError: its operators do not fit this build of torch
        drop_modules("torchvision")

    def unavailable(*args, **kwargs):
        raise RuntimeError("torchvision does not load here and was replaced by a stand-in that cannot compute")

    names = {
        "torchvision": {},
        "torchvision.ops": {},
        "torchvision.ops.boxes": {"batched_nms": unavailable, "box_area": unavailable},
        "torchvision.transforms": {},
        "torchvision.transforms.functional": {"resize": unavailable, "to_pil_image": unavailable},
    }
    for name, members in names.items():
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__dict__.update(members)
        sys.modules[name] = module
    try:
        yield
    finally:
        drop_modules("torchvision")  # diffusers and transformers look for it, and must not find this


def drop_modules(package):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[name]
