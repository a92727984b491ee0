"""The MedVLM's speed beside what the device could do at best."""

import torch

from refinerank_core.limits import decode_bytes, encode_flops, measure_rates
from refinerank_core.models.medvlm import QwenMedVLM
from refinerank_core.structures import Frame
from refinerank_core.timing import Line, median_ms

_WRITTEN = {"cuda": 64, "cpu": 12}
_PROMPT = "Count from one upwards in words."


def limit_lines(
    medvlm: QwenMedVLM, frame: Frame, question: str, *, encode_ms: float, repeats: int
) -> list[Line]:
    """Rates of the device, and reading and writing against them.

    Args:
        medvlm: the model.
        frame: one frame, whose encoding took encode_ms.
        question: asked about it.
        encode_ms: with nothing in the cache.
        repeats: measurements per line.
    """
    model = medvlm.network
    device, dtype = model.device, model.lm_head.weight.dtype
    on_card = device.type == "cuda"
    rates = measure_rates(device, dtype)
    vision = medvlm.see([frame], "")[0]
    merge = model.config.vision_config.spatial_merge_size
    flops = encode_flops(
        model,
        patches=vision.final[..., 0].numel() * merge**2,
        tokens=medvlm.prompt_tokens(vision, question, frame.time_s),
    )
    best_ms = flops / rates.flops_per_s * 1000
    aim = "<= 2 x limit + 30 ms" if on_card else ""
    lines = [
        Line("matrix product", rates.flops_per_s / 1e12, "TFLOP/s", 5),
        Line("copy in memory", rates.bytes_per_s / 1e9, "GB/s", 5),
        Line("encode, limit by matrix products", best_ms, "ms", 1),
        Line(
            "encode against its limit",
            encode_ms / best_ms,
            "x",
            repeats,
            aim,
            encode_ms <= 2 * best_ms + 30 if aim else None,
        ),
    ]
    return lines + _writing_lines(medvlm, rates.bytes_per_s, device, repeats)


def _writing_lines(
    medvlm: QwenMedVLM, bytes_per_s: float, device: torch.device, repeats: int
) -> list[Line]:
    """Tokens per second, one a step; nothing where the model ends its text too early.

    With guesses a text is written faster than its limit here; how much depends on the text, so
    that `answer` among the stages shows it.
    """
    count = _WRITTEN[device.type]

    def write(limit: int) -> bool:
        return medvlm.write(_PROMPT, limit, guessing=False)[1]

    if not write(count + 1):
        return []
    one = median_ms(lambda: write(1), repeats)
    many = median_ms(lambda: write(count + 1), repeats)
    rate = count / max(many - one, 1e-6) * 1000
    best = bytes_per_s / decode_bytes(medvlm.network, tokens=count)
    aim = ">= 0.5 x" if device.type == "cuda" else ""
    return [
        Line("text written, one token a step", rate, "tok/s", repeats),
        Line("text written, limit by memory", best, "tok/s", 1),
        Line(
            "writing against its limit",
            rate / best,
            "x",
            repeats,
            aim,
            rate >= 0.5 * best if aim else None,
        ),
    ]
