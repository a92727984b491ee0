"""A first-party screen: one gr.HTML out of the template, style and scripts of a folder.

What a screen was built with (its properties) is replaced by an update that arrives before its
script has begun: the first update that a visitor gets has to bring it along.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

STAGE = Path(__file__).parent / "stage"
"""Whose style, and whose scripts where they are named, every screen shares."""


def screen(
    name: str,
    server_functions: Sequence[Callable[[Any], dict[str, Any]]],
    *,
    shared: Sequence[str],
    scripts: Sequence[str],
    **properties: Any,
) -> gr.HTML:
    """Put a screen into the open Blocks.

    Args:
        name: of its folder, of the .css file in it, and of its element.
        server_functions: each gets one message.
        shared: scripts of the stage that come first.
        scripts: its own, joined after them into the one function body that gr.HTML runs.
        properties: what the script finds in `props`.
    """
    folder = STAGE.with_name(name)
    styles = dict.fromkeys((STAGE / "stage.css", folder / f"{name}.css"))
    code = [*(STAGE / one for one in shared), *(folder / one for one in scripts)]
    return gr.HTML(
        value="",
        html_template=_text(folder / "template.html"),
        css_template="".join(map(_text, styles)),
        js_on_load="\n".join(map(_text, code)),
        apply_default_css=False,
        server_functions=list(server_functions),
        elem_id=name,
        **properties,
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
