"""The words for things: classes, actions, structures, and phrases from general to specific."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

PROCEDURES = ("laparoscopy", "endoscopic dissection", "open surgery")


@dataclass(frozen=True)
class Ladder:
    """Phrases that all fit one class, from those that fit many to its own.

    Attributes:
        general: fit every thing of its kind.
        category: fit a few classes alike.
        specific: name the class; the first is its usual name.
    """

    general: tuple[str, ...]
    category: tuple[str, ...]
    specific: tuple[str, ...]


def _tool(category: tuple[str, ...], *specific: str) -> Ladder:
    return Ladder(("surgical instrument", "instrument", "surgical tool"), category, specific)


def _hand(owner: str, hand: str, whose: str) -> Ladder:
    specific = (f"{owner} {hand} hand", f"{whose} {hand} hand")
    return Ladder(("hand", "gloved hand"), (f"{owner} hand", f"{hand} hand"), specific)


def _tissue(category: str, *specific: str) -> Ladder:
    return Ladder(("tissue", "structure", "anatomy"), (category,), specific)


GRASPING, CUTTING, ENERGY = "grasping instrument", "cutting instrument", "energy instrument"
JAWED, SUCTION = "jawed instrument", "suction instrument"

LADDERS = MappingProxyType(
    {
        "grasper": _tool((GRASPING, JAWED), "grasper", "grasping forceps"),
        "bipolar": _tool((ENERGY, JAWED), "bipolar", "bipolar forceps"),
        "hook": _tool((ENERGY, "dissecting instrument"), "hook", "hook cautery"),
        "scissors": _tool((CUTTING, JAWED), "scissors", "surgical scissors"),
        "clipper": _tool(("clipping instrument", JAWED), "clipper", "clip applier"),
        "irrigator": _tool((SUCTION, "tube"), "irrigator", "suction irrigator"),
        "specimen bag": _tool(("bag", "retrieval device"), "specimen bag", "retrieval bag"),
        "forceps": _tool((GRASPING, JAWED), "forceps", "endoscopic forceps"),
        "knife": _tool((CUTTING, ENERGY), "knife", "dissection knife"),
        "tweezers": _tool((GRASPING, "hand instrument"), "tweezers", "surgical tweezers"),
        "scalpel": _tool((CUTTING, "hand instrument"), "scalpel", "surgical blade"),
        "needle holder": _tool((GRASPING, "suturing instrument"), "needle holder", "needle driver"),
        "gauze": _tool(("dressing", "swab"), "gauze", "gauze swab"),
        "own left hand": _hand("own", "left", "surgeon's"),
        "own right hand": _hand("own", "right", "surgeon's"),
        "other left hand": _hand("other", "left", "assistant's"),
        "other right hand": _hand("other", "right", "assistant's"),
        "liver": _tissue("organ", "liver"),
        "gallbladder": _tissue("organ", "gallbladder"),
        "cystic duct": _tissue("duct", "cystic duct"),
        "omentum": _tissue("fat", "omentum", "fatty tissue"),
        "abdominal wall": _tissue("wall", "abdominal wall"),
        "clip": _tissue("metal clip", "clip"),
        "mucosa": _tissue("lining", "mucosa"),
        "lesion": _tissue("tumour", "lesion"),
        "submucosa": _tissue("layer", "submucosa", "submucosal layer"),
        "wound": _tissue("opening", "wound"),
        "wound edge": _tissue("edge", "wound edge"),
        "muscle": _tissue("deep tissue", "muscle"),
        "skin": _tissue("surface", "skin"),
        "drape": _tissue("cloth", "drape", "surgical drape"),
    }
)

ACTIONS = MappingProxyType(
    {  # as said of a tool in a frame, and the bare verb for other forms
        "grasping": "grasp",
        "retracting": "retract",
        "dissecting": "dissect",
        "cutting": "cut",
        "clipping": "clip",
        "coagulating": "coagulate",
        "rinsing": "rinse",
        "suturing": "suture",
        "wiping": "wipe",
        "collecting": "collect",
        "marking": "mark",
    }
)
