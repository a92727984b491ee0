"""The three models of a profile, loaded and fitted to one another."""

from dataclasses import dataclass
from pathlib import Path

import torch

from refinerank_core.allocator import keep_freed_memory
from refinerank_core.checkpoint import load_refinenet, refinenet_id
from refinerank_core.device import choose_device, choose_dtype
from refinerank_core.errors import ModelError, WeightsError
from refinerank_core.hub import on_this_machine
from refinerank_core.models.detector import DetectorSettings, GroundingDino
from refinerank_core.models.medvlm import MedVLMSettings, QwenMedVLM
from refinerank_core.models.protocols import Detector, MedVLM
from refinerank_core.models.random_models import build_random_detector, build_random_medvlm
from refinerank_core.profiles import MedVLMProfile, Profile
from refinerank_core.refinenet import RefineNet, RefineNetConfig

NO_REFINENET = "none"


@dataclass(frozen=True, eq=False)
class Lineup:
    """Loaded models.

    Attributes:
        medvlm, detector: the frozen models.
        net: RefineNet; None where none is trained for the MedVLM.
        refinenet_name: its name and hash, or "none"; of an ensemble all names, joined by " + ".
        device, dtype: where the MedVLM runs, and in which number type.
        others: further RefineNets of an ensemble.
    """

    medvlm: MedVLM
    detector: Detector
    net: RefineNet | None
    refinenet_name: str
    device: torch.device
    dtype: torch.dtype
    others: tuple[RefineNet, ...] = ()


def load_lineup(profile: Profile, *, device: str = "auto", dtype: str = "auto") -> Lineup:
    """Load what a profile names; nothing is downloaded.

    Args:
        profile: without a recipe.
        device: "auto", "cpu" or "cuda".
        dtype: "auto" (the profile's, which may be "auto": bfloat16 on CUDA, float32 on the CPU) or
            a name.

    Raises:
        WeightsError: a checkpoint is absent, damaged, or does not fit the others.
        ModelError: the device does not exist, or cannot do what the profile asks for.
    """
    place = choose_device(device)
    kind = choose_dtype(place, profile.medvlm.dtype if dtype == "auto" else dtype)
    _refuse_quantised_on_cpu(profile.medvlm, place)
    profile = on_this_machine(profile)
    nets, net_name = _refinenets(profile)
    medvlm, detector = _frozen(profile, place, kind)
    for net in nets:
        _require_matching_widths(net, medvlm, net_name)
    first = nets[0] if nets else None
    return Lineup(medvlm, detector, first, net_name, place, kind, nets[1:])


def load_frozen(profile: Profile, place: torch.device) -> tuple[QwenMedVLM, GroundingDino]:
    """Load the MedVLM and the detector alone: the RefineNet may still have to be trained.

    Args:
        profile: without a recipe.
        place: where they run, in the profile's number type.

    Raises:
        WeightsError: a checkpoint is absent or damaged.
        ModelError: the device cannot do what the profile asks for.
    """
    _refuse_quantised_on_cpu(profile.medvlm, place)
    without = profile.refinenet.model_copy(update={"source": None})
    found = on_this_machine(profile.model_copy(update={"refinenet": without}))
    return _frozen(found, place, choose_dtype(place, profile.medvlm.dtype))


def load_nets(profile: Profile, medvlm: MedVLM) -> tuple[tuple[RefineNet, ...], str]:
    """The RefineNets of a profile for a MedVLM that is loaded already, and their name.

    Raises:
        WeightsError: it is absent, damaged, or was trained on another MedVLM.
    """
    nets, name = _refinenets(on_this_machine(profile))
    for net in nets:
        if isinstance(medvlm, QwenMedVLM):
            _require_matching_widths(net, medvlm, name)
    return nets, name


def _frozen(
    profile: Profile, place: torch.device, kind: torch.dtype
) -> tuple[QwenMedVLM, GroundingDino]:
    if place.type == "cpu":
        keep_freed_memory()
    medvlm = QwenMedVLM(_medvlm_settings(profile), place, kind)
    return medvlm, GroundingDino(_detector_settings(profile), place)


def random_lineup(
    profile: Profile, recipe: str, seed: int, *, device: str = "auto", dtype: str = "auto"
) -> Lineup:
    """Models of a recipe's sizes with random weights, made on the device and never written.

    Args:
        profile: its settings; its sources are not read.
        recipe: "random-7b" or "random-small".
        seed: of all weights.
        device, dtype: as for load_lineup.

    Raises:
        ModelError: the device does not exist or has too little memory.
    """
    place = choose_device(device)
    kind = choose_dtype(place, profile.medvlm.dtype if dtype == "auto" else dtype)
    model, processor = build_random_medvlm(recipe, place, kind, seed=seed)
    medvlm = QwenMedVLM.around(
        model, processor, _medvlm_settings(profile), place, name=f"{recipe}-medvlm@{seed}"
    )
    model, processor = build_random_detector(recipe, place, seed=seed + 1)
    detector = GroundingDino.around(
        model, processor, _detector_settings(profile), place, name=f"{recipe}-detector@{seed}"
    )
    query_dim, final_dim, inter_dim = medvlm.widths
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 2)
        net = RefineNet(
            RefineNetConfig(
                query_dim=query_dim,
                final_dim=final_dim,
                inter_dim=inter_dim,
                inter_block=profile.refinenet.inter_block,
            )
        )
    net = net.eval().requires_grad_(False)
    return Lineup(medvlm, detector, net, f"{recipe}-refinenet@{seed}", place, kind)


def _medvlm_settings(profile: Profile) -> MedVLMSettings:
    medvlm = profile.medvlm
    return MedVLMSettings(
        source=profile.locate(medvlm.source),
        blocks=medvlm.blocks,
        max_pixels=medvlm.max_pixels,
        answer_prompt=medvlm.answer_prompt,
        batch=medvlm.batch,
        cache_bytes=medvlm.cache_mb << 20,
        attention=medvlm.attention,
        load_bits=medvlm.load_bits,
        compile=medvlm.compile,
    )


def _detector_settings(profile: Profile) -> DetectorSettings:
    detector = profile.detector
    return DetectorSettings(
        source=profile.locate(detector.source),
        backend=detector.backend,
        tokenizer=profile.locate(detector.tokenizer),
        box_threshold=detector.box_threshold,
        text_threshold=detector.text_threshold,
        short_side=detector.short_side,
        long_side=detector.long_side,
        batch=detector.batch,
    )


def _refuse_quantised_on_cpu(profile: MedVLMProfile, place: torch.device) -> None:
    if profile.load_bits is not None and place.type != "cuda":
        raise ModelError(
            f"The profile loads the MedVLM in {profile.load_bits} bits, which needs a CUDA device. "
            "Set medvlm.load_bits to null to run it here."
        )


def _refinenets(profile: Profile) -> tuple[tuple[RefineNet, ...], str]:
    """The profile's RefineNet, those that join it, and their names."""
    if profile.refinenet.source is None:
        return (), NO_REFINENET
    sources = (profile.refinenet.source, *profile.refinenet.ensemble)
    loaded = [_refinenet(profile, Path(profile.locate(source))) for source in sources]
    return tuple(net for net, _ in loaded), " + ".join(name for _, name in loaded)


def _refinenet(profile: Profile, path: Path) -> tuple[RefineNet, str]:
    """One RefineNet and its name."""
    net = load_refinenet(path)
    if net.config.inter_block != profile.refinenet.inter_block:
        raise WeightsError(
            f"{path.name} reads block {net.config.inter_block}, the profile says "
            f"{profile.refinenet.inter_block}. Correct refinenet.inter_block."
        )
    return net, refinenet_id(path)


def _require_matching_widths(net: RefineNet, medvlm: QwenMedVLM, name: str) -> None:
    config = net.config
    wanted = (config.query_dim, config.final_dim, config.inter_dim)
    if wanted != medvlm.widths:
        raise WeightsError(
            f"{name} reads features of width {wanted}, {medvlm.model_id} gives {medvlm.widths} "
            "(question, final, block). Use the RefineNet that was trained on this MedVLM."
        )
