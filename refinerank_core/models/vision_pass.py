"""One pass of the Qwen2.5-VL vision tower: frames in, block grids and merged tokens out."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from refinerank_core.errors import ModelError
from refinerank_core.models.protocols import VisionFeatures
from refinerank_core.models.raster_order import to_raster, window_order
from refinerank_core.structures import Frame

_LONGEST_SHAPE = 200  # the architecture's image processor refuses longer ones


def refuse_unseeable(frame: Frame, *, least_px: int) -> None:
    """Raise ModelError for a frame smaller than one merged patch, or far too long."""
    width, height = frame.size_wh
    if min(width, height) < least_px:
        raise ModelError(
            f"The frame is {width}x{height} px; the model needs at least {least_px}x{least_px} px. "
            "Use a larger video."
        )
    if max(width, height) > _LONGEST_SHAPE * min(width, height):
        raise ModelError(
            f"The frame is {width}x{height} px, more than {_LONGEST_SHAPE} times as long as it is "
            "wide, which the model cannot see. Crop the video."
        )


def look_at(
    model: Any, processor: Any, frames: Sequence[Frame], blocks: Sequence[int]
) -> list[VisionFeatures]:
    """Vision features of each frame, in order.

    Args:
        model: Qwen2_5_VLForConditionalGeneration.
        processor: its own.
        frames: of any sizes that `refuse_unseeable` lets pass.
        blocks: of the tower whose grids are kept, in raster order.

    Raises:
        ModelError: the tower gave numbers that are not.
    """
    vision = model.config.vision_config
    merge = int(vision.spatial_merge_size)
    pixels = processor.image_processor(
        images=[frame.image for frame in frames], return_tensors="pt"
    )
    output, caught = _tower(model.model.visual, pixels, blocks)
    grids = [(int(h), int(w)) for _, h, w in pixels["image_grid_thw"].tolist()]
    patches = [height * width for height, width in grids]
    merged = torch.split(output.pooler_output, [count // merge**2 for count in patches])
    parts = {block: torch.split(states, patches) for block, states in caught.items()}
    seen: list[VisionFeatures] = []
    for row, grid_hw in enumerate(grids):
        order = window_order(
            grid_hw, merge_size=merge, window_px=vision.window_size, patch_px=vision.patch_size
        )
        height, width = grid_hw
        features = VisionFeatures(
            blocks={
                block: to_raster(states[row], order, grid_hw, merge)
                for block, states in parts.items()
            },
            final=merged[row].reshape(height // merge, width // merge, -1).clone(),
            resized_wh=(width * vision.patch_size, height * vision.patch_size),
        )
        refuse_nan("the vision tower", features.final)
        seen.append(features)
    return seen


def _tower(tower: Any, pixels: Any, blocks: Sequence[int]) -> tuple[Any, dict[int, Tensor]]:
    """The tower's output, and that of each of these blocks in the tower's own order."""
    caught: dict[int, Tensor] = {}
    hooks = [
        tower.blocks[block].register_forward_hook(
            lambda _module, _inputs, output, block=block: caught.update(
                {block: output[0] if isinstance(output, tuple) else output}
            )
        )
        for block in blocks
    ]
    try:
        output = tower(
            pixels["pixel_values"].to(tower.device, tower.dtype),
            grid_thw=pixels["image_grid_thw"].to(tower.device),
        )
    finally:
        for hook in hooks:
            hook.remove()
    return output, caught


def refuse_nan(part: str, values: Tensor) -> None:
    """Raise ModelError where a part of the model gave numbers that are not finite."""
    if not bool(torch.isfinite(values).all()):
        raise ModelError(
            f"{part[0].upper()}{part[1:]} gave numbers that are not finite. "
            "Check the checkpoint, or run it in float32."
        )
