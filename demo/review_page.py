"""The Review tab: its screen, its functions, and the Hub's login where there is one."""

from __future__ import annotations

from typing import Any

import gradio as gr

from demo.events import answered
from demo.review import review
from demo.review_asks import PAGE
from demo.review_desk import ReviewDesk
from demo.review_facts import LABELS
from demo.review_files import ReviewFiles
from demo.review_services import Reviews
from refinerank_core.failures import CATEGORIES, SECONDARY_TAGS
from refinerank_core.formats.catalogue import FORMATS

TAGS = [*(one for one in CATEGORIES if one != "correct"), *SECONDARY_TAGS]


def build(reviews: Reviews, desk: ReviewDesk, files: ReviewFiles, blocks: gr.Blocks) -> None:
    """Lay out the tab in the open Blocks and wire it."""
    served = (
        desk.frame,
        desk.review_queue,
        desk.review_case,
        desk.review_picture,
        desk.review_candidates,
        desk.review_suggest,
        desk.review_login,
        desk.review_act,
        files.review_fill,
        files.review_forget,
        files.review_out,
        files.review_in,
    )
    if reviews.identity.mode == "hub":
        gr.LoginButton(elem_id="hub-login", visible="hidden")  # pressed by the tab's own dialog
    constants: dict[str, Any] = {
        "identity": reviews.identity.mode,
        "ephemeral": reviews.ephemeral,
        "tags": TAGS,
        "formats": [{"name": one.name, "title": one.title} for one in FORMATS.values()],
        "methods": [[name, words] for name, words in LABELS.items()],
        "page": PAGE,
    }
    view = review([answered(one) for one in served], **constants)
    if reviews.identity.mode == "hub":
        blocks.load(
            Doorman(reviews, constants).on_open,
            outputs=view,
            queue=False,
            show_progress="hidden",
            api_visibility="private",
        )


class Doorman:
    """Lets those in whom the Hub knows.

    An update that comes before the page's script has begun replaces everything that the page was
    built with, so what it was built with comes along.
    """

    def __init__(self, reviews: Reviews, constants: dict[str, Any]) -> None:
        self._reviews = reviews
        self._constants = constants

    def on_open(self, profile: gr.OAuthProfile | None) -> gr.HTML:
        """A visitor comes, logged in or not."""
        visitor: dict[str, Any] | None = None
        if profile is not None:
            name = profile.username
            visitor = {"name": name, "token": self._reviews.identity.admit(name)}
        return gr.HTML(visitor=visitor, **self._constants)
