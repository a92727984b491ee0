"""The page: its tabs, its look, and what is passed to launch()."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from demo import api, explore
from demo.frames import FrameImages
from demo.services import Services
from demo.sessions import Sessions

TITLE = "RefineRank"
_PAGE_CSS = Path(__file__).with_name("page.css")
_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")  # none is fetched
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "monospace")


def build(services: Services, sessions: Sessions) -> gr.Blocks:
    """The whole app; nothing is loaded or served yet."""
    frames = FrameImages()
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as blocks:
        explore.build(services, sessions, frames, blocks)
        api.build(api.Api(services, sessions, frames))
    blocks.queue(max_size=32)
    return blocks  # type: ignore[no-any-return]


def launch_settings(services: Services) -> dict[str, Any]:
    """Arguments of launch() that belong to the page, not to the machine it runs on."""
    return {
        "theme": gr.themes.Base(font=list(_FONTS), font_mono=list(_MONO)),
        "css": _PAGE_CSS.read_text(encoding="utf-8"),
        "footer_links": [],
        "allowed_paths": [],
        "max_file_size": services.limits.upload_mb * 2**20,
        "show_error": False,
    }
