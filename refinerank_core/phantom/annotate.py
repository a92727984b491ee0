"""The truth of a moment: who is where, doing what, and how much of it shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refinerank_core.phantom.camera import Lens, apply
from refinerank_core.phantom.cast import Actor, Body
from refinerank_core.phantom.geometry import VIEW_CENTRE
from refinerank_core.phantom.moment import Moment
from refinerank_core.phantom.motion import phase_at
from refinerank_core.phantom.raster import Raster, Seen
from refinerank_core.phantom.truth import FrameTruth, ObjectTruth, side_of

STRUCTURE_INSTANCES = 100  # structures are numbered from here


def annotate(
    moment: Moment, lens: Lens, structures: Sequence[str], *, with_masks: bool
) -> FrameTruth:
    """Return what is true of a moment's frame.

    Args:
        moment: the instant.
        lens: whose circle bounds the view.
        structures: name of each label of the tissue, from label 1 on.
        with_masks: put masks into the truth.
    """
    raster = Raster(moment.size_wh, moment.sheets.hidden)
    for patches in moment.laid:
        raster.add(patches)
    for bodies in moment.drawn:
        for patches in bodies:
            raster.add(patches)
    raster.close()
    things: list[ObjectTruth] = []
    number = 0
    for fixture in moment.fixtures:
        seen = raster.seen(number, with_mask=with_masks)
        number += 1
        if seen is not None:
            things.append(_still_thing(fixture.instance, fixture.name, seen))
    for actor in moment.actors:
        for body in actor.bodies:
            seen = raster.seen(number, with_mask=with_masks)
            number += 1
            if seen is not None:
                things.append(_acting_thing(actor, body, seen, moment, lens))
    for place, name in enumerate(structures):
        seen = raster.seen_structure(moment.labels, place + 1, with_mask=with_masks)
        if seen is not None:
            things.append(_still_thing(STRUCTURE_INSTANCES + place, name, seen))
    things.sort(key=lambda thing: thing.instance)
    return FrameTruth(moment.time_s, moment.size_wh, tuple(things))


def _still_thing(instance: int, name: str, seen: Seen) -> ObjectTruth:
    return ObjectTruth(instance, name, "structure", seen.box, seen.mask, seen.share)


def _acting_thing(actor: Actor, body: Body, seen: Seen, moment: Moment, lens: Lens) -> ObjectTruth:
    centre = np.array(VIEW_CENTRE)
    inside = apply(moment.to_view, actor.tip_at(moment.time_s)) - centre
    outside = apply(moment.to_view, actor.pivot) - centre
    side, clear = side_of(inside, outside, lens.half_wh())
    phase = phase_at(actor.phases, moment.time_s)
    return ObjectTruth(
        instance=body.instance,
        name=body.name,
        kind=body.kind,
        box=seen.box,
        mask=seen.mask,
        visible_share=seen.share,
        side=side,
        side_is_clear=clear,
        owner=actor.owner,
        hand=body.hand,
        action=phase.action if phase else None,
        target=phase.target if phase else None,
    )
