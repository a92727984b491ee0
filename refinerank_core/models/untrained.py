"""Small checkpoints with seeded random weights, to run the whole path before anything is trained.

Whatever they answer is UNTRAINED and is labelled so wherever it is shown.
"""

import json
from pathlib import Path

import torch

from refinerank_core.checkpoint import save_refinenet
from refinerank_core.models.small import (
    SmallDetector,
    SmallMedVLM,
    build_detector,
    build_medvlm,
    save,
)
from refinerank_core.refinenet import RefineNet, RefineNetConfig

INTER_BLOCK = 5

_WORDS = (
    "which what where is are the a an at in of to and with from by instrument surgical tool hand "
    "grasper bipolar hook scissors clipper irrigator specimen bag forceps knife tweezers scalpel "
    "needle holder gauze suction gallbladder liver duct artery tissue lesion mucosa left right top "
    "bottom own other dissecting cutting clipping grasping retracting coagulating rinsing suturing "
    "track locate bounding boxes for every seconds second between identify visual target that "
    "question asks localize name object detector noun phrases times frames shown"
).split()


def _corpus() -> list[str]:
    """Words as they stand in a sentence (a space in front) and alone."""
    return [" ".join(_WORDS), *_WORDS, "At 12.500 seconds: [101, 22, 333, 44]\nQuestion:"]


def write_untrained(folder: Path, *, seed: int) -> Path:
    """Make a MedVLM, a detector, a RefineNet and a profile that names them.

    Args:
        folder: is made; files of the same names in it are replaced.
        seed: of all weights; the same seed gives the same checkpoints.

    Returns:
        The profile file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    size = SmallMedVLM()
    medvlm, processor = build_medvlm(size, _corpus(), seed=seed)
    save(medvlm, processor, folder / "medvlm")
    detector_folder = folder / "detector"
    detector_folder.mkdir(exist_ok=True)
    detector, detector_processor = build_detector(
        SmallDetector(), _WORDS, detector_folder, seed=seed + 1
    )
    save(detector, detector_processor, detector_folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 2)
        net = RefineNet(
            RefineNetConfig(
                query_dim=size.width,
                final_dim=size.width,
                inter_dim=size.hidden,
                inter_block=INTER_BLOCK,
                d_model=32,
                hidden_dim=64,
            )
        )
    save_refinenet(net, folder / "refinenet.safetensors")
    profile = {
        "name": "untrained",
        "label": "UNTRAINED random weights: shows the path, not the skill",
        "untrained": True,
        "medvlm": {"source": "./medvlm", "blocks": list(size.full_blocks)},
        "detector": {"source": "./detector"},
        "refinenet": {"source": "./refinenet.safetensors", "inter_block": INTER_BLOCK},
    }
    path = folder / "profile.json"
    path.write_text(json.dumps(profile, indent=2) + "\n", encoding="utf-8")
    return path
