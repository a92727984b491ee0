"""Every way to point at one thing of a frame so that nothing else in view could be meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from refinerank_core.phantom.truth import FrameTruth, ObjectTruth
from refinerank_core.phantom.vocabulary import LADDERS

SLIVER = 0.03  # a thing of which less shows than this cannot be mistaken for another
ASKED_STRUCTURES = ("gallbladder", "cystic duct", "lesion", "submucosa", "wound", "clip")
KINDS = ("name", "category", "action", "target", "side", "hand", "owner", "structure", "negative")

ANY = "instrument"


class Pointer(NamedTuple):
    """One way to say which thing is meant.

    Attributes:
        kind: one of KINDS.
        noun: "instrument", a class, or a category.
        facts: what sets it apart: an action, an action and a target, a side, an owner and a hand.
        name: the class of the thing, which a detector should look for; no part of what is said.
        instance: the thing, None for a thing that is not in view.
    """

    kind: str
    noun: str
    facts: tuple[str, ...]
    name: str
    instance: int | None


def pointers(truth: FrameTruth) -> list[Pointer]:
    """Return every unambiguous pointer to a thing in view."""
    seen = [thing for thing in truth.objects if thing.visible_share > SLIVER or thing.in_view]
    tools = [thing for thing in seen if thing.kind == "tool"]
    found = _by_name(seen)
    for noun in dict.fromkeys([ANY, *(tool.name for tool in tools)]):
        fitting = [tool for tool in tools if noun in (ANY, tool.name)]
        if noun == ANY or len(fitting) > 1:  # a lone hook is just "the hook"
            found += _by_facts(noun, fitting)
    found += _hands(seen)
    return found


def absent_names(truths: Sequence[FrameTruth], names: Iterable[str]) -> list[str]:
    """Return those of names of which nothing shows in any of the frames."""
    shown = {thing.name for truth in truths for thing in truth.objects}
    return [name for name in names if name not in shown]


def _only(things: Sequence[ObjectTruth]) -> ObjectTruth | None:
    """Return the one thing, if it is one and in view."""
    return things[0] if len(things) == 1 and things[0].in_view else None


def _by_name(seen: Sequence[ObjectTruth]) -> list[Pointer]:
    """Point by class, by category, and at structures and hands by their names."""
    found = []
    for name in dict.fromkeys(thing.name for thing in seen):
        thing = _only([other for other in seen if other.name == name])
        if thing is None or (thing.kind == "structure" and name not in ASKED_STRUCTURES):
            continue
        kind = {"tool": "name", "hand": "owner", "structure": "structure"}[thing.kind]
        found.append(Pointer(kind, name, (), name, thing.instance))
    tools = [thing for thing in seen if thing.kind == "tool"]
    for category in sorted({word for tool in tools for word in LADDERS[tool.name].category}):
        thing = _only([tool for tool in tools if category in LADDERS[tool.name].category])
        if thing is not None:
            found.append(Pointer("category", category, (), thing.name, thing.instance))
    return found


def _by_facts(noun: str, fitting: Sequence[ObjectTruth]) -> list[Pointer]:
    """Point at a tool by what it does, to what, from where, in whose hand."""
    readings: tuple[tuple[str, Callable[[ObjectTruth], tuple[str | None, ...]]], ...] = (
        ("action", lambda tool: (tool.action,)),
        ("target", lambda tool: (tool.action, tool.target)),
        ("target", lambda tool: (tool.target,)),
        ("hand", lambda tool: (tool.owner, tool.hand)),
        ("owner", lambda tool: (tool.owner,)),
    )
    found = []
    for kind, read in readings:
        for thing in fitting:
            facts = tuple(fact for fact in read(thing) if fact is not None)
            if len(facts) == len(read(thing)) and thing is _only(
                [other for other in fitting if read(other) == facts]
            ):
                found.append(Pointer(kind, noun, facts, thing.name, thing.instance))
    for thing in fitting:
        rivals = [o for o in fitting if o.side == thing.side or not o.side_is_clear]
        if thing.side is not None and thing.side_is_clear and thing is _only(rivals):
            found.append(Pointer("side", noun, (thing.side,), thing.name, thing.instance))
    return found


def _hands(seen: Sequence[ObjectTruth]) -> list[Pointer]:
    """Point at a hand by the tool that it holds."""
    found = []
    tools = [thing for thing in seen if thing.kind == "tool" and thing.hand is not None]
    for tool in tools:
        if sum(other.name == tool.name for other in tools) > 1:
            continue
        holding = [
            thing
            for thing in seen
            if thing.kind == "hand" and (thing.owner, thing.hand) == (tool.owner, tool.hand)
        ]
        hand = _only(holding)
        if hand is not None:
            found.append(Pointer("hand", "hand", (tool.name,), hand.name, hand.instance))
    return found
