"""Mistral: LoRA fit and greedy generation, in bfloat16."""

from .causal_lm import CausalLM, CausalLMFit, CausalLMGenerate


class _Mistral(CausalLM):
    model = "mistral"
    native_imports = ("transformers:MistralForCausalLM",)

    def build_native(self, size):
        from transformers import MistralConfig, MistralForCausalLM

        config = MistralConfig(
            vocab_size=size["vocabulary"],
            num_hidden_layers=size["layers"],
            num_attention_heads=size["query_heads"],
            num_key_value_heads=size["key_value_heads"],
            hidden_size=size["hidden"],
            intermediate_size=size["feed_forward"],
            max_position_embeddings=size["positions"],
            sliding_window=size["sliding_window"],
        )
        return MistralForCausalLM(config)

    def build_keras(self, hub, size):
        backbone = hub.models.MistralBackbone(
            vocabulary_size=size["vocabulary"],
            num_layers=size["layers"],
            num_query_heads=size["query_heads"],
            num_key_value_heads=size["key_value_heads"],
            hidden_dim=size["hidden"],
            intermediate_dim=size["feed_forward"],
            sliding_window=size["sliding_window"],
        )
        return hub.models.MistralCausalLM(backbone, preprocessor=None)


class Fit(_Mistral, CausalLMFit):
    native_imports = (*_Mistral.native_imports, *CausalLMFit.trainer_imports)

    def time_step(self, scale):
        self.sample()


class Generate(_Mistral, CausalLMGenerate):
    def time_step(self, scale, batch):
        self.sample()
