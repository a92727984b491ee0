"""The stage: one first-party gr.HTML that draws frames, boxes and maps in the browser.

Its parts lie beside this file; the scripts are joined in the order of SCRIPTS into the one
function body that gr.HTML runs. Boxes are float pixels of the source frame everywhere.
"""

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from demo.screen import screen

SHARED = ("state.js", "codec.js", "parts.js", "frames.js", "paint.js", "canvas.js")
"""Scripts that other pages with frames and boxes use too."""
SCRIPTS = (
    "layers.js",
    "human.js",
    "picking.js",
    "inspector.js",
    "strip.js",
    "maps.js",
    "transport.js",
    "ask.js",
    "take.js",
    "figures.js",
    "arrivals.js",
    "upload.js",
    "deidentify.js",
    "variants.js",
    "stage.js",
)


def stage(
    server_functions: Sequence[Callable[[Any], dict[str, Any]]],
    *,
    reviewing: bool,
    profile: dict[str, Any],
    stages: list[str],
    caveat: str,
    limits: dict[str, Any],
) -> gr.HTML:
    """Put the stage into the open Blocks.

    Args:
        server_functions: frame, pool, maps, read, shots, take and variants, and review_enqueue
            and reviewed where reviewing; each gets one message.
        reviewing: answers can be put into the review queue.
        profile, stages, caveat, limits: fixed facts for the screen.
    """
    return screen(
        "stage",
        server_functions,
        shared=SHARED,
        scripts=SCRIPTS,
        reviewing=reviewing,
        profile=profile,
        stages=stages,
        caveat=caveat,
        limits=limits,
        samples=[],
        link=None,
        clip=None,
        answer=None,
        progress=None,
    )
