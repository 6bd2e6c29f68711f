"""BERT base with a two-label classifier on top: fit and predict on whole-length sequences."""

from . import keras_stack, native_torch
from .protocol import Cell


class _Bert(Cell):
    model = "bert"
    native_imports = ("transformers:BertForSequenceClassification", "transformers:Trainer")
    keras_imports = ("keras", "keras_hub")

    def build_native(self, size):
        from transformers import BertConfig, BertForSequenceClassification

        config = BertConfig(
            vocab_size=size["vocabulary"],
            num_hidden_layers=size["layers"],
            num_attention_heads=size["heads"],
            hidden_size=size["hidden"],
            intermediate_size=size["feed_forward"],
            max_position_embeddings=size["positions"],
            num_labels=size["classes"],
        )
        return BertForSequenceClassification(config)

    def row(self, size):
        import torch

        ids = torch.randint(1, size["vocabulary"], (size["length"],))
        return {
            "input_ids": ids,
            "token_type_ids": torch.zeros_like(ids),
            "attention_mask": torch.ones_like(ids),
            "labels": torch.tensor(1),
        }

    def build_keras(self, size):
        hub = keras_stack.hub()
        backbone = hub.models.BertBackbone(
            vocabulary_size=size["vocabulary"],
            num_layers=size["layers"],
            num_heads=size["heads"],
            hidden_dim=size["hidden"],
            intermediate_dim=size["feed_forward"],
            max_sequence_length=size["positions"],
        )
        # BertClassifier became BertTextClassifier when KerasNLP became KerasHub.
        classifier = getattr(hub.models, "BertTextClassifier", None) or hub.models.BertClassifier
        return classifier(backbone, num_classes=size["classes"], preprocessor=None)

    def keras_inputs(self, size):
        import numpy as np

        shape = (size["batch"], size["length"])
        rng = np.random.default_rng(0)
        inputs = {
            "token_ids": rng.integers(1, size["vocabulary"], shape, dtype="int32"),
            "segment_ids": np.zeros(shape, "int32"),
            "padding_mask": np.ones(shape, "int32"),
        }
        return inputs, rng.integers(0, size["classes"], size["batch"], dtype="int32")


class Fit(_Bert):
    task = "fit"

    def time_step(self, scale):
        self.sample()

    def native(self, size, mode):
        return native_torch.trainer_fit(self.build_native(size), self.row(size), size["batch"], mode)

    def keras(self, size, family):
        keras = keras_stack.keras(size)
        inputs, labels = self.keras_inputs(size)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return keras_stack.fit(self.build_keras(size), inputs, labels, loss, keras_stack.adamw())


class Predict(_Bert):
    task = "predict"

    def time_step(self, scale):
        self.sample()

    def native(self, size, mode):
        return native_torch.trainer_predict(self.build_native(size), self.row(size), size["batch"], mode)

    def keras(self, size, family):
        keras_stack.keras(size)
        inputs, _ = self.keras_inputs(size)
        return keras_stack.predict(self.build_keras(size), inputs)
