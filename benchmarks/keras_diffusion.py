"""Stable Diffusion put together from KerasCV's own blocks, at any width and depth.

KerasCV's classes have the published widths built in and download weights. At the published widths these
functions make the same layers: the tests compare parameter counts with the package's own classes.
"""

import functools
import gzip
import importlib
import tempfile


def blocks(module):
    """A module of keras_cv's Stable Diffusion package, wherever this release keeps it."""
    from keras_cv.models.stable_diffusion import DiffusionModel

    package = DiffusionModel.__module__.rpartition(".")[0]
    return importlib.import_module(f"{package}.{module}")


def image_encoder(widths, depth, latent_scale):
    """The VAE encoder: images (batch, height, width, 3) to latents (batch, height / 8, width / 8, 4)."""
    import keras

    conv, resnet = blocks("padded_conv2d").PaddedConv2D, blocks("resnet_block").ResnetBlock
    attention = blocks("attention_block").AttentionBlock
    layers = [keras.layers.Input((None, None, 3)), conv(widths[0], 3, padding=1)]
    for level, width in enumerate(widths):
        layers += [resnet(width) for _ in range(depth)]
        if level < len(widths) - 1:
            layers.append(conv(width, 3, padding=((0, 1), (0, 1)), strides=2))
    layers += [resnet(widths[-1]), attention(widths[-1]), resnet(widths[-1])]
    layers += [keras.layers.GroupNormalization(epsilon=1e-5), keras.layers.Activation("swish")]
    layers += [conv(8, 3, padding=1), conv(8, 1), keras.layers.Lambda(lambda x: x[..., :4] * latent_scale)]
    return keras.Sequential(layers)


def decoder(image, widths, depth, latent_scale):
    """The VAE decoder: latents (batch, image / 8, image / 8, 4) to images (batch, image, image, 3)."""
    import keras

    conv, resnet = blocks("padded_conv2d").PaddedConv2D, blocks("resnet_block").ResnetBlock
    attention = blocks("attention_block").AttentionBlock
    layers = [keras.layers.Input((image // 8, image // 8, 4)), keras.layers.Rescaling(1.0 / latent_scale)]
    layers += [conv(4, 1), conv(widths[-1], 3, padding=1)]
    layers += [resnet(widths[-1]), attention(widths[-1]), resnet(widths[-1])]
    for level in reversed(range(len(widths))):
        layers += [resnet(widths[level]) for _ in range(depth + 1)]
        if level:
            layers += [keras.layers.UpSampling2D(2), conv(widths[level], 3, padding=1)]
    layers += [keras.layers.GroupNormalization(epsilon=1e-5), keras.layers.Activation("swish")]
    return keras.Sequential([*layers, conv(3, 3, padding=1)])


def unet(image, text_length, text_width, widths, depth, heads):
    """The denoising UNet; inputs as KerasCV names them: latent, timestep_embedding, context."""
    import keras

    diffusion = blocks("diffusion_model")
    conv = blocks("padded_conv2d").PaddedConv2D
    context = keras.layers.Input((text_length, text_width), name="context")
    time = keras.layers.Input((widths[0],), name="timestep_embedding")
    latent = keras.layers.Input((image // 8, image // 8, 4), name="latent")
    t = keras.layers.Dense(4 * widths[0])(time)
    t = keras.layers.Activation("swish")(t)
    t = keras.layers.Dense(4 * widths[0])(t)
    deepest = len(widths) - 1

    def block(x, level):
        x = diffusion.ResBlock(widths[level])([x, t])
        return attend(x, level) if level < deepest else x

    def attend(x, level):
        return diffusion.SpatialTransformer(heads, widths[level] // heads, fully_connected=False)([x, context])

    x = conv(widths[0], 3, padding=1)(latent)
    skips = [x]
    for level, width in enumerate(widths):
        for _ in range(depth):
            x = block(x, level)
            skips.append(x)
        if level < deepest:
            x = conv(width, 3, strides=2, padding=1)(x)
            skips.append(x)
    x = diffusion.ResBlock(widths[-1])([x, t])
    x = attend(x, deepest)
    x = diffusion.ResBlock(widths[-1])([x, t])
    for level in reversed(range(len(widths))):
        for _ in range(depth + 1):
            x = block(keras.layers.Concatenate()([x, skips.pop()]), level)
        if level:
            x = diffusion.Upsample(widths[level])(x)
    x = keras.layers.GroupNormalization(epsilon=1e-5)(x)
    x = keras.layers.Activation("swish")(x)
    return keras.Model([latent, time, context], conv(4, kernel_size=3, padding=1)(x))


def text_encoder(length, vocabulary, width, depth, heads):
    """The CLIP text encoder: tokens and positions (batch, length) to (batch, length, width)."""
    import keras

    text = blocks("text_encoder")
    tokens = keras.layers.Input((length,), dtype="int32", name="tokens")
    positions = keras.layers.Input((length,), dtype="int32", name="positions")
    x = text.CLIPEmbedding(vocabulary, width, length)([tokens, positions])
    for _ in range(depth):
        x = text.CLIPEncoderLayer(width, heads, activation=text.quick_gelu)(x)
    return keras.Model([tokens, positions], keras.layers.LayerNormalization(epsilon=1e-5)(x))


def pipeline(size, latent_scale, jit_compile):
    """KerasCV's StableDiffusion with its parts put in, so that it downloads nothing.

    Returns the pipeline and its three parts as one object with `weights`.
    """
    from keras_cv.models import StableDiffusion

    pipeline = StableDiffusion(128, 128, jit_compile=jit_compile)
    pipeline.img_height = pipeline.img_width = size["image"]  # the constructor rounds to 128
    pipeline._text_encoder = text_encoder(
        size["text_length"], size["text_vocabulary"], size["text_width"], size["text_layers"], size["text_heads"]
    )
    pipeline._diffusion_model = unet(
        size["image"],
        size["text_length"],
        size["text_width"],
        size["unet_widths"],
        size["unet_blocks"],
        size["unet_heads"],
    )
    pipeline._decoder = decoder(size["image"], size["vae_widths"], size["vae_blocks"], latent_scale)
    pipeline._tokenizer = offline_tokenizer()
    # The published width of the timestep embedding is a default argument of this method.
    pipeline._get_timestep_embedding = functools.partial(pipeline._get_timestep_embedding, dim=size["unet_widths"][0])
    parts = [pipeline._text_encoder, pipeline._diffusion_model, pipeline._decoder]
    for part in parts:
        part.compile(jit_compile=jit_compile)
    return pipeline, Parts(parts)


class Parts:
    """Several Keras models counted as one."""

    def __init__(self, models):
        self.models = models

    @property
    def weights(self):
        return [weight for model in self.models for weight in model.weights]

    @property
    def trainable_weights(self):
        return [weight for model in self.models for weight in model.trainable_weights]


def offline_tokenizer():
    """KerasCV's byte-pair tokenizer over an empty merge list, instead of the one that it would download."""
    tokenizer = blocks("clip_tokenizer").SimpleTokenizer
    with tempfile.NamedTemporaryFile(suffix=".gz") as file:
        file.write(gzip.compress(b"#version: 0.2\n"))
        file.flush()
        return tokenizer(bpe_path=file.name)
