"""Programs call the page's endpoints by name."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from gradio_client import Client  # type: ignore[import-untyped]

from demo import ui
from demo.sessions import Sessions
from refinerank_core.grounding import Grounding
from tests.browser.fakes import FakeCore, fake_services, tissue
from tests.browser.reviewing import launched
from tests.clips import encode


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Sessions]]:
    samples = tmp_path_factory.mktemp("samples")
    encode(samples / "alpha.mp4", (tissue(k) for k in range(20)))
    services = fake_services(FakeCore(), samples)
    sessions = Sessions(services)
    blocks = ui.build(services, sessions)
    yield launched(blocks, ui.launch_settings(services)), sessions
    blocks.close()
    sessions.close()


def test_a_client_lists_reads_and_asks(served: tuple[str, Sessions]) -> None:
    client = Client(served[0], verbose=False)

    names = [one["name"] for one in client.predict(api_name="/list_samples")]
    frame = client.predict("alpha", 7, api_name="/read_frame")
    plain = client.predict("alpha", "where is the hook?", [0.4], api_name="/ground")

    assert names == ["alpha"]
    assert frame["time_s"] == pytest.approx(7 / 25)
    assert Grounding.model_validate(plain).question.times_s == (0.4,)


def test_only_the_three_doors_are_open_to_programs(served: tuple[str, Sessions]) -> None:
    client = Client(served[0], verbose=False)

    named = client.view_api(return_format="dict", print_info=False)["named_endpoints"]

    assert sorted(named) == ["/ground", "/list_samples", "/read_frame"]


@pytest.mark.parametrize("path", ["/etc/passwd", "app.py", "../app.py", "assets/profiles"])
def test_no_file_of_the_server_can_be_fetched(served: tuple[str, Sessions], path: str) -> None:
    reply = httpx.get(f"{served[0]}gradio_api/file={path}")

    assert reply.status_code in {403, 404}


def test_what_a_visitor_uploaded_cannot_be_fetched(
    served: tuple[str, Sessions], tmp_path: Path
) -> None:
    url, sessions = served
    clip = sessions.add_upload(
        sessions.of("me"), encode(tmp_path / "mine.mp4", (tissue(k) for k in range(3)))
    )
    assert clip.home is not None

    reply = httpx.get(f"{url}gradio_api/file={clip.home / 'mine.mp4'}")

    assert reply.status_code in {403, 404}
