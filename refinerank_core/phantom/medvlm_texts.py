"""The words that the small MedVLM is built to read and write."""

from __future__ import annotations

from typing import Any

import numpy as np

from refinerank_core.models import prompts
from refinerank_core.models.small import SmallMedVLM, build_medvlm
from refinerank_core.phantom import wording
from refinerank_core.phantom.medvlm_start import scale_by_width
from refinerank_core.phantom.pointers import Pointer
from refinerank_core.phantom.vocabulary import ACTIONS, LADDERS, PROCEDURES

EVERYDAY = (
    "which what where when who is are was were be does do has have the a an this that these those "
    "it its of in on at to and or with by from for as into near please show find tell me give box "
    "boxes bounding image picture frame frames video clip second seconds minute time times all any "
    "one two three first last next upper lower middle centre center above below behind beside "
    "left right top bottom side hand hands glove gloves tool tools instrument instruments device "
    "surgeon assistant nurse operator patient surgical surgery operation procedure view scope "
    "used using held holding hold holds moves moving move works working touches touching enters "
    "entering comes coming visible seen currently now being been can could you "
    "bipolar forceps suction needle scissors not no none track locate identify detect mark"
).split()


def corpus() -> list[str]:
    """Return texts that hold every word the phantom's questions and answers use, and some more."""
    rng = np.random.default_rng(0)
    texts = [" ".join(EVERYDAY), *EVERYDAY]
    for ladder in LADDERS.values():
        for phrase in (*ladder.general, *ladder.category, *ladder.specific):
            texts += [phrase, f" {phrase}, {phrase}", f"{phrase[0].upper()}{phrase[1:]}"]
    for action, verb in ACTIONS.items():
        texts += [f"the instrument {action} the tissue, used to {verb} it", action, verb]
    for form in (*wording.ROLES, *wording.SPAN_ASKS, *wording.SPAN_FORMS):
        texts.append(form.format(thing="the tool", when="at", When="At", step=1, first=2, last=3))
    texts += [scene for scenes in wording.SCENES.values() for scene in scenes]
    for whose in wording.WHOSE.values():
        texts += [form.format("left hand") for form in whose]
    pointers = (
        Pointer("action", "instrument", ("grasping",), "grasper", 1),
        Pointer("target", "instrument", ("liver",), "grasper", 1),
        Pointer("target", "instrument", ("grasping", "liver"), "grasper", 1),
        Pointer("side", "instrument", ("top",), "grasper", 1),
        Pointer("hand", "hand", ("scalpel",), "own left hand", 1),
        Pointer("owner", "instrument", ("own", "left"), "scalpel", 1),
    )
    texts += [wording.said(pointer, rng) for pointer in pointers for _ in range(40)]
    question = "You are at 00:12"
    texts.append(prompts.feature_prompt(question, 12.5))
    texts.append(prompts.query_prompt(question))
    texts.append(prompts.answer_prompt(question, [12.5, 13.0]))
    texts.append("12.5 seconds: [101, 22, 333, 44] 13.0 seconds: [5, 6, 7, 8]")
    texts += [f"{name} is not in view. {name} are not in view." for name in PROCEDURES]
    texts.append("user assistant system")
    return texts


def build_phantom_medvlm(size: SmallMedVLM, *, seed: int) -> tuple[Any, Any]:
    """Return a small untrained Qwen2.5-VL that knows the phantom's words, and its processor."""
    model, processor = build_medvlm(size, corpus(), seed=seed)
    scale_by_width(model.model.visual, depth=size.depth, seed=seed)
    scale_by_width(model.model.language_model, depth=size.layers, seed=seed + 1)
    return model, processor
