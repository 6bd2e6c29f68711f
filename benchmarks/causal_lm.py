"""What the decoder-only language models share: LoRA fit in bfloat16, and greedy generation at two batch sizes."""

from . import keras_stack, native_torch
from .protocol import SIZES, Cell

GENERATE_BATCHES = [1, 32]  # the two published rows, at every scale


class CausalLM(Cell):
    """A subclass gives `build_native` (a transformers model) and `build_keras` (a KerasHub CausalLM)."""

    keras_imports = ("keras", "keras_hub")

    def native_model(self, size):
        import torch

        return self.build_native(size).to(getattr(torch, size["dtype"]))

    def keras_model(self, size, family):
        self.refuse(family)
        keras_stack.keras(size)
        return self.build_keras(keras_stack.hub(), size)

    def refuse(self, family):
        if family == "keras2":
            raise NotImplementedError(f"{self.model} does not exist for Keras 2 (published as NA)")


class CausalLMFit(CausalLM):
    task = "fit"
    trainer_imports = ("transformers:Trainer", "peft:LoraConfig")

    def native(self, size, mode):
        import torch

        model = native_torch.add_lora(self.native_model(size), size["lora_rank"])
        ids = torch.randint(1, size["vocabulary"], (size["length"],))
        row = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}
        return without_adapters(native_torch.trainer_fit(model, row, size["batch"], mode))

    def keras(self, size, family):
        import numpy as np

        model = self.keras_model(size, family)
        model.backbone.enable_lora(rank=size["lora_rank"])
        shape = (size["batch"], size["length"])
        ids = np.random.default_rng(0).integers(1, size["vocabulary"], shape, dtype="int32")
        inputs = {"token_ids": ids, "padding_mask": np.ones(shape, "int32")}
        import keras

        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return without_adapters(keras_stack.fit(model, inputs, ids, loss, keras_stack.adamw()))


class CausalLMGenerate(CausalLM):
    task = "generate"
    params = [list(SIZES["scales"]), GENERATE_BATCHES]
    param_names = ["scale", "batch"]

    def native(self, size, mode):
        model = self.native_model(size)
        asked = (size["batch"], size["prompt"], size["new_tokens"], size["vocabulary"])
        return native_torch.generate(model, *asked, mode)

    def keras(self, size, family):
        model = self.keras_model(size, family)
        return keras_stack.generate(model, size["batch"], size["prompt"], size["new_tokens"], size["vocabulary"])


def without_adapters(workload):
    """Count the parameters of the model itself. peft and KerasHub shape their LoRA adapters differently: KerasHub's
    first factor has one slice a head.

    Raises RuntimeError when nothing is trained, as KerasNLP's LoRA did under Keras 2.
    """
    if workload.trainable == 0:
        raise RuntimeError("LoRA left no trainable parameter")
    workload.parameters -= workload.trainable
    return workload
