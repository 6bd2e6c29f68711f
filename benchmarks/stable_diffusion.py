"""Stable Diffusion 1.4: fit of the image encoder on random features, predict of one denoising step.

Where the two libraries differ by nature: for classifier-free guidance diffusers calls its UNet once on a
doubled batch, KerasCV twice. Both use the DDIM update, so N steps are N guided UNet evaluations.
"""

from . import evidence, keras_diffusion, keras_stack, native_torch
from .protocol import Cell

LATENT_SCALE = 0.18215  # of the Stable Diffusion 1.x autoencoder
PROMPT = "a photograph of an astronaut riding a horse"


class _StableDiffusion(Cell):
    model = "stable_diffusion"
    native_imports = (
        "diffusers:StableDiffusionPipeline",
        "diffusers:UNet2DConditionModel",
        "transformers:CLIPTextModel",
    )
    keras_imports = ("keras", "keras_cv")

    def autoencoder_native(self, size):
        from diffusers import AutoencoderKL

        levels = len(size["vae_widths"])
        return AutoencoderKL(
            down_block_types=("DownEncoderBlock2D",) * levels,
            up_block_types=("UpDecoderBlock2D",) * levels,
            block_out_channels=tuple(size["vae_widths"]),
            layers_per_block=size["vae_blocks"],
            act_fn="silu",
            latent_channels=4,
            sample_size=size["image"],
        )

    def unet_native(self, size):
        from diffusers import UNet2DConditionModel

        attended = len(size["unet_widths"]) - 1  # every level but the deepest has cross-attention
        return UNet2DConditionModel(
            sample_size=size["image"] // 8,
            down_block_types=("CrossAttnDownBlock2D",) * attended + ("DownBlock2D",),
            up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * attended,
            block_out_channels=tuple(size["unet_widths"]),
            layers_per_block=size["unet_blocks"],
            attention_head_dim=size["unet_heads"],  # diffusers' name for the number of heads here
            cross_attention_dim=size["text_width"],
        )

    def text_encoder_native(self, size):
        from transformers import CLIPTextConfig, CLIPTextModel

        config = CLIPTextConfig(
            vocab_size=size["text_vocabulary"],
            hidden_size=size["text_width"],
            intermediate_size=4 * size["text_width"],
            num_hidden_layers=size["text_layers"],
            num_attention_heads=size["text_heads"],
            max_position_embeddings=size["text_length"],
        )
        return CLIPTextModel(config)


class Fit(_StableDiffusion):
    task = "fit"

    def time_step(self, scale):
        self.sample()

    def native(self, size, mode):
        import torch

        class ImageEncoder(torch.nn.Module):
            """The part of the autoencoder that KerasCV's ImageEncoder is: scaled means of the latent."""

            def __init__(self, autoencoder):
                super().__init__()
                self.encoder, self.quant_conv = autoencoder.encoder, autoencoder.quant_conv

            def forward(self, images):
                return self.quant_conv(self.encoder(images))[:, :4] * LATENT_SCALE

        images = torch.rand(size["batch"], 3, size["image"], size["image"])
        latent = torch.rand(size["batch"], 4, size["image"] // 8, size["image"] // 8)
        return native_torch.plain_fit(ImageEncoder(self.autoencoder_native(size)), images, latent, mode)

    def keras(self, size, family):
        import numpy as np

        keras = keras_stack.keras(size)
        rng = np.random.default_rng(0)
        images = rng.random((size["batch"], size["image"], size["image"], 3), dtype="float32")
        latent = rng.random((size["batch"], size["image"] // 8, size["image"] // 8, 4), dtype="float32")
        encoder = keras_diffusion.image_encoder(size["vae_widths"], size["vae_blocks"], LATENT_SCALE)
        loss, adam = keras.losses.MeanSquaredError(), keras.optimizers.Adam()
        return keras_stack.fit(encoder, images, latent, loss, adam)


class Predict(_StableDiffusion):
    task = "predict"

    def time_step(self, scale):
        self.sample()

    def native(self, size, mode):
        import torch
        from diffusers import DDIMScheduler, StableDiffusionPipeline

        pipeline = StableDiffusionPipeline(
            vae=self.autoencoder_native(size),
            text_encoder=self.text_encoder_native(size),
            tokenizer=native_torch.text_tokenizer(size["text_length"]),
            unet=self.unet_native(size),
            # The default PNDM would call the UNet N + 1 times for N steps.
            scheduler=DDIMScheduler(
                beta_start=0.00085,
                beta_end=0.012,
                beta_schedule="scaled_linear",
                clip_sample=False,
                steps_offset=1,
            ),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        ).to(native_torch.device())
        pipeline.set_progress_bar_config(disable=True)
        used = [pipeline.unet, pipeline.text_encoder, pipeline.vae.decoder, pipeline.vae.post_quant_conv]
        everything, unet = torch.nn.ModuleList(used), pipeline.unet
        pipeline.unet = native_torch.maybe_compile(pipeline.unet, mode)
        prompts = [PROMPT] * size["batch"]

        def run(steps):
            pipeline(prompts, height=size["image"], width=size["image"], num_inference_steps=steps, output_type="np")
            native_torch.wait()

        done = native_torch.workload(run, everything, mode, loop="StableDiffusionPipeline", scheduler="DDIM")
        # Guided: the UNet is given every latent twice, with and without the prompt.
        batch, where = 2 * size["batch"], native_torch.device()
        latent = torch.rand(batch, 4, size["image"] // 8, size["image"] // 8, device=where)
        text = torch.rand(batch, size["text_length"], size["text_width"], device=where)
        return native_torch.works_on(done, lambda: unet(latent, 1, text), latent=latent, context=text)

    def keras(self, size, family):
        import numpy as np

        keras_stack.keras(size)
        pipeline, everything = keras_diffusion.pipeline(size, LATENT_SCALE, keras_stack.jit())

        def run(steps):
            pipeline.text_to_image(PROMPT, batch_size=size["batch"], num_steps=steps)

        done = keras_stack.workload(run, everything, loop="StableDiffusion.text_to_image", scheduler="DDIM")
        unet = pipeline.diffusion_model
        latent, time, context = (np.zeros((size["batch"], *part.shape[1:]), "float32") for part in unet.inputs)
        done.inputs = evidence.shapes({"latent": latent, "context": context})
        # Guided: the UNet is called twice, with and without the prompt.
        done.forward_flops = lambda: 2 * keras_stack.forward_flops(unet, [latent, time, context])
        return done
