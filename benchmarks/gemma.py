"""Gemma: LoRA fit and greedy generation, in bfloat16."""

from .causal_lm import CausalLM, CausalLMFit, CausalLMGenerate


class _Gemma(CausalLM):
    model = "gemma"
    native_imports = ("transformers:GemmaForCausalLM",)

    def build_native(self, size):
        import transformers

        if not hasattr(transformers, "GemmaConfig"):
            raise NotImplementedError(f"transformers {transformers.__version__} does not have Gemma yet")
        from transformers import GemmaConfig, GemmaForCausalLM

        config = GemmaConfig(
            vocab_size=size["vocabulary"],
            num_hidden_layers=size["layers"],
            num_attention_heads=size["query_heads"],
            num_key_value_heads=size["key_value_heads"],
            head_dim=size["head"],
            hidden_size=size["hidden"],
            intermediate_size=size["feed_forward"],
            max_position_embeddings=size["positions"],
        )
        return GemmaForCausalLM(config)

    def build_keras(self, hub, size):
        backbone = hub.models.GemmaBackbone(
            vocabulary_size=size["vocabulary"],
            num_layers=size["layers"],
            num_query_heads=size["query_heads"],
            num_key_value_heads=size["key_value_heads"],
            head_dim=size["head"],
            hidden_dim=size["hidden"],
            intermediate_dim=2 * size["feed_forward"],  # KerasHub counts gate and value together
        )
        return hub.models.GemmaCausalLM(backbone, preprocessor=None)


class Fit(_Gemma, CausalLMFit):
    native_imports = (*_Gemma.native_imports, *CausalLMFit.trainer_imports)

    def time_step(self, scale):
        self.sample()


class Generate(_Gemma, CausalLMGenerate):
    def time_step(self, scale, batch):
        self.sample()
