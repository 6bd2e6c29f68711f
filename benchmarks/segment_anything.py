"""SegmentAnything: fit of the image encoder on random features, predict from points to masks."""

import contextlib
import functools

from . import keras_stack, native_torch
from .protocol import Cell, Workload


class _SegmentAnything(Cell):
    model = "segment_anything"
    native_imports = ("segment_anything",)
    keras_imports = ("keras", "keras_cv")

    def load(self, imports):
        with native_torch.torchvision_stand_in() if imports is self.native_imports else contextlib.nullcontext():
            super().load(imports)

    def encoder_native(self, size):
        import torch

        with native_torch.torchvision_stand_in():
            from segment_anything.modeling import ImageEncoderViT

        return ImageEncoderViT(
            img_size=size["image"],
            patch_size=size["patch"],
            depth=size["layers"],
            embed_dim=size["width"],
            num_heads=size["heads"],
            mlp_ratio=4,
            out_chans=size["out"],
            norm_layer=functools.partial(torch.nn.LayerNorm, eps=1e-6),
            use_rel_pos=True,
            global_attn_indexes=tuple(size["global_attention"]),
            window_size=size["window"],
        )

    def sam_native(self, size):
        with native_torch.torchvision_stand_in():
            from segment_anything.modeling import MaskDecoder, PromptEncoder, Sam, TwoWayTransformer

        grid = size["image"] // size["patch"]
        prompts = PromptEncoder(
            embed_dim=size["out"],
            image_embedding_size=(grid, grid),
            input_image_size=(size["image"], size["image"]),
            mask_in_chans=16,
        )
        transformer = TwoWayTransformer(
            depth=size["decoder_layers"],
            embedding_dim=size["out"],
            num_heads=size["decoder_heads"],
            mlp_dim=size["decoder_mlp"],
        )
        decoder = MaskDecoder(
            transformer_dim=size["out"], transformer=transformer, iou_head_hidden_dim=size["iou_hidden"]
        )
        return Sam(self.encoder_native(size), prompts, decoder)

    def encoder_keras(self, size):
        from keras_cv.models import ViTDetBackbone

        return ViTDetBackbone(
            include_rescaling=False,
            input_shape=(size["image"], size["image"], 3),
            patch_size=size["patch"],
            embed_dim=size["width"],
            depth=size["layers"],
            mlp_dim=4 * size["width"],
            num_heads=size["heads"],
            out_chans=size["out"],
            global_attention_indices=size["global_attention"],
            window_size=size["window"],
        )

    def sam_keras(self, size):
        from keras_cv.models import SAMMaskDecoder, SAMPromptEncoder, SegmentAnythingModel

        grid = size["image"] // size["patch"]
        prompts = SAMPromptEncoder(
            embed_dim=size["out"],
            image_embedding_size=(grid, grid),
            input_image_size=(size["image"], size["image"]),
            mask_in_chans=16,
        )
        transformer = keras_cv_two_way_transformer()(
            depth=size["decoder_layers"],
            embed_dim=size["out"],
            num_heads=size["decoder_heads"],
            mlp_dim=size["decoder_mlp"],
        )
        decoder = SAMMaskDecoder(
            transformer_dim=size["out"], transformer=transformer, iou_head_hidden_dim=size["iou_hidden"]
        )
        encoder = self.encoder_keras(size)
        return SegmentAnythingModel(backbone=encoder, prompt_encoder=prompts, mask_decoder=decoder)


def keras_cv_two_way_transformer():
    """KerasCV does not export its TwoWayTransformer; it lives beside the mask decoder that uses it."""
    import importlib

    from keras_cv.models import SAMMaskDecoder

    package = SAMMaskDecoder.__module__.rpartition(".")[0]
    return importlib.import_module(f"{package}.sam_transformer").TwoWayTransformer


class Fit(_SegmentAnything):
    task = "fit"

    def time_step(self, scale):
        self.sample()

    def native(self, size, mode):
        import torch

        grid = size["image"] // size["patch"]
        images = torch.rand(size["batch"], 3, size["image"], size["image"])
        features = torch.rand(size["batch"], size["out"], grid, grid)
        return native_torch.plain_fit(self.encoder_native(size), images, features, mode)

    def keras(self, size, family):
        import numpy as np

        keras = keras_stack.keras(size)
        grid = size["image"] // size["patch"]
        rng = np.random.default_rng(0)
        images = rng.random((size["batch"], size["image"], size["image"], 3), dtype="float32")
        features = rng.random((size["batch"], grid, grid, size["out"]), dtype="float32")
        encoder = self.encoder_keras(size)
        loss, adam = keras.losses.MeanSquaredError(), keras.optimizers.Adam()
        return keras_stack.fit(encoder, images, features, loss, adam)


class Predict(_SegmentAnything):
    task = "predict"

    def time_step(self, scale):
        self.sample()

    def native(self, size, mode):
        import torch

        where = native_torch.device()
        sam = self.sam_native(size).to(where).eval()
        images = torch.rand(size["batch"], 3, size["image"], size["image"], device=where)
        # One foreground point and the padding point that both libraries add when there is no box.
        points = torch.full((1, 1, 2), size["image"] / 2, device=where)
        labels = torch.ones(1, 1, device=where)
        encode = native_torch.maybe_compile(sam.image_encoder, mode)
        decode = native_torch.maybe_compile(sam.mask_decoder, mode)

        def step(encode, decode):
            for embedding in encode(images):  # the decoder takes one image at a time, as in Sam.forward
                sparse, dense = sam.prompt_encoder(points=(points, labels), boxes=None, masks=None)
                decode(
                    image_embeddings=embedding.unsqueeze(0),
                    image_pe=sam.prompt_encoder.get_dense_pe(),
                    sparse_prompt_embeddings=sparse,
                    dense_prompt_embeddings=dense,
                    multimask_output=True,
                )

        def run(steps):
            for _ in range(steps):
                step(encode, decode)
            native_torch.wait()

        done = native_torch.workload(torch.inference_mode()(run), sam, mode, loop="plain")
        forward = functools.partial(step, sam.image_encoder, sam.mask_decoder)
        return native_torch.works_on(done, forward, images=images, points=points)

    def keras(self, size, family):
        import numpy as np

        keras_stack.keras(size)
        rng = np.random.default_rng(0)
        batch = size["batch"]
        points = np.zeros((batch, 2, 2), "float32")
        points[:, 0] = size["image"] / 2
        inputs = {
            "images": rng.random((batch, size["image"], size["image"], 3), dtype="float32"),
            "points": points,
            "labels": np.tile(np.array([1, -1], "float32"), (batch, 1)),  # a point, and the padding point
        }
        sam = self.sam_keras(size)
        workload = keras_stack.predict(sam, inputs)
        # What model.predict puts in the place of prompts that are not given.
        absent = {"boxes": np.zeros((batch, 0, 2, 2)), "masks": np.zeros((batch, 0, 256, 256, 1))}
        workload.forward_flops = lambda: keras_stack.forward_flops(sam, {**inputs, **absent})
        return without_position_matrix(workload, sam)


def without_position_matrix(workload: Workload, sam):
    """KerasCV keeps the random position matrix as a weight, PyTorch as a buffer: count neither."""
    workload.parameters = keras_stack.count(sam.trainable_weights)
    return workload
