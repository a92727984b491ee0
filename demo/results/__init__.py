"""The Results tab's screen: tables, videos and pictures, one first-party gr.HTML."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from demo.stage import read_part

_HERE = Path(__file__).parent
SHARED = ("state.js", "parts.js", "paint.js")
SCRIPTS = ("tables.js", "videos.js", "worst.js", "learning.js", "results.js")


def results(server_functions: Sequence[Callable[[Any], dict[str, Any]]]) -> gr.HTML:
    """Put the screen into the open Blocks.

    Args:
        server_functions: those of ResultsDesk; each gets one message.
    """
    shared = [read_part(name) for name in SHARED]
    own = [(_HERE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return gr.HTML(
        value="",
        html_template=(_HERE / "template.html").read_text(encoding="utf-8"),
        css_template=read_part("stage.css") + (_HERE / "results.css").read_text(encoding="utf-8"),
        js_on_load="\n".join([*shared, *own]),
        apply_default_css=False,
        server_functions=list(server_functions),
        elem_id="results",
    )
