"""The Review tab's screen: one first-party gr.HTML on the parts of the stage.

Its parts lie beside this file; the scripts are joined after the stage's shared ones.
"""

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from demo.screen import screen
from demo.stage import SHARED

SCRIPTS = (
    "outbox.js",
    "people.js",
    "queue.js",
    "case.js",
    "side.js",
    "edit.js",
    "marks.js",
    "decide.js",
    "files.js",
    "review.js",
)


def review(
    server_functions: Sequence[Callable[[Any], dict[str, Any]]],
    *,
    identity: str,
    ephemeral: bool,
    tags: list[str],
    formats: list[dict[str, Any]],
    methods: list[list[str]],
    page: int,
) -> gr.HTML:
    """Put the screen into the open Blocks.

    Args:
        server_functions: those of ReviewDesk and ReviewFiles; each gets one message.
        identity: how names are known: open, accounts or hub.
        ephemeral: the record does not outlive the machine.
        tags, formats, methods: what may be chosen. page: cases on one page of the queue.
    """
    return screen(
        "review",
        server_functions,
        shared=SHARED,
        scripts=SCRIPTS,
        identity=identity,
        ephemeral=ephemeral,
        tags=tags,
        formats=formats,
        methods=methods,
        page=page,
        visitor=None,
    )
