"""Drawing answers on frames."""

import numpy as np

from refinerank_core.drawing import ROLES, draw_box, draw_grounding, png_bytes
from refinerank_core.pipeline import RefineRank
from refinerank_core.video import Video

QUESTION = "Where is the hook? " + "long words " * 40 + "<b>é ü 手术</b>"


def test_a_box_is_drawn_on_its_own_edges() -> None:
    picture = np.full((100, 120, 3), 90, dtype=np.uint8)

    draw_box(picture, (20.0, 30.0, 80.0, 70.0), ROLES["refinerank"])

    for x, y in [(50, 70), (20, 55), (80, 50)]:
        np.testing.assert_allclose(picture[y, x], ROLES["refinerank"].colour, atol=40)
    assert (picture[50, 50] == 90).all()
    assert (picture[95, 110] == 90).all()


def test_roles_differ_in_colour_in_dash_and_in_tag() -> None:
    named = [role for role in ROLES.values() if role.tag]

    assert len({role.colour for role in named}) == len(named)
    assert len({role.dash_px for role in named}) == len(named)
    assert len({role.tag for role in named}) == len(named)


def test_a_box_past_the_edge_is_drawn_without_fault() -> None:
    picture = np.zeros((40, 40, 3), dtype=np.uint8)

    for role in ROLES.values():
        draw_box(picture, (-5.0, -5.0, 60.0, 60.0), role)
        draw_box(picture, (38.0, 38.0, 40.0, 40.0), role)

    assert picture.shape == (40, 40, 3)


def test_a_sheet_shows_every_time_and_says_untrained(system: RefineRank, video: Video) -> None:
    grounding = system.ground(video, QUESTION, [0.0, 1.0, 2.0])
    frames = [video.read_frame(one.frame_index) for one in grounding.times]

    sheet = draw_grounding(grounding, frames)

    trained = grounding.model_copy(
        update={"profile": grounding.profile.model_copy(update={"untrained": False})}
    )
    shorter = draw_grounding(trained, frames)
    assert sheet.shape[1] == 2 * 640 + 3 * 12
    # The line that says UNTRAINED is a strip of its own.
    assert sheet.shape[0] - shorter.shape[0] == 27
    assert png_bytes(sheet).startswith(b"\x89PNG")
