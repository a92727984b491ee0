"""A page server over a pretended core and a real record, in a process that can be killed.

`python -m tests.browser.review_server SAMPLES DB PORT`
"""

from __future__ import annotations

import sys
from pathlib import Path

from demo import ui
from demo.identity import Identity
from demo.review_services import Reviews
from demo.sessions import Sessions
from refinerank_core.reviews.store import Store
from tests.browser.fakes import FakeCore, fake_services


def serve(samples: Path, db: Path, port: int) -> None:
    """Serve until killed."""
    services = fake_services(FakeCore(), samples)
    sessions = Sessions(services)
    reviews = Reviews(Store(db), Identity(), ephemeral=False, videos=None)
    ui.build(services, sessions, reviews).launch(
        server_name="127.0.0.1", server_port=port, quiet=True, **ui.launch_settings(services)
    )


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
