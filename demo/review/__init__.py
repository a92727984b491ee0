"""The Review tab's screen: one first-party gr.HTML on the parts of the stage.

Its parts lie beside this file; the scripts are joined after the stage's shared ones.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from demo.stage import SHARED, read_part

_HERE = Path(__file__).parent
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
    shared = [read_part(name) for name in SHARED]
    own = [(_HERE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return gr.HTML(
        value="",
        html_template=(_HERE / "template.html").read_text(encoding="utf-8"),
        css_template=read_part("stage.css") + (_HERE / "review.css").read_text(encoding="utf-8"),
        js_on_load="\n".join([*shared, *own]),
        apply_default_css=False,
        server_functions=list(server_functions),
        elem_id="review",
        identity=identity,
        ephemeral=ephemeral,
        tags=tags,
        formats=formats,
        methods=methods,
        page=page,
        visitor=None,
    )
