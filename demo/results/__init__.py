"""The Results tab's screen: tables, videos and pictures, one first-party gr.HTML."""

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from demo.screen import screen

SHARED = ("state.js", "parts.js", "paint.js", "pictures.js")
SCRIPTS = ("tables.js", "videos.js", "worst.js", "learning.js", "results.js")


def results(server_functions: Sequence[Callable[[Any], dict[str, Any]]]) -> gr.HTML:
    """Put the screen into the open Blocks.

    Args:
        server_functions: those of ResultsDesk; each gets one message.
    """
    return screen("results", server_functions, shared=SHARED, scripts=SCRIPTS)
