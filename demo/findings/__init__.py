"""The Failures tab's screen: filters, pictures and tables, one first-party gr.HTML."""

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from demo.screen import screen

SHARED = ("state.js", "parts.js", "paint.js", "pictures.js")
SCRIPTS = ("gallery.js", "agreement.js", "findings.js")


def findings(server_functions: Sequence[Callable[[Any], dict[str, Any]]]) -> gr.HTML:
    """Put the screen into the open Blocks.

    Args:
        server_functions: findings, thumb and agreement; each gets one message.
    """
    return screen("findings", server_functions, shared=SHARED, scripts=SCRIPTS)
