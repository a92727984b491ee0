"""Fetching a profile's models from a hub; the hub is a small server on this machine."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from huggingface_hub import constants

from refinerank_core.__main__ import main
from refinerank_core.errors import WeightsError
from refinerank_core.fetch import Hub, HubFile, digest_of, fetch, in_words, plan, refuse_small_disk
from refinerank_core.hub import Part, find, on_this_machine, parts_of
from refinerank_core.hub_lock import LOCK_NAME, locked_commit
from refinerank_core.pipeline import RefineRank
from refinerank_core.profiles import PROFILE_FOLDER, load_profile

COMMIT = "a" * 40
NEWER = "c" * 40
WEIGHTS = bytes(range(256)) * 400


class FakeHub:
    """Repositories as the model hub serves them, and a record of what was asked for.

    Attributes:
        repos: hub id -> path -> bytes; what is longer than 1000 bytes is a large file.
        asked: (path, Range header or "") of every download.
        commits: newest first; all hold the same files.
    """

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.asked: list[tuple[str, str]] = []
        self.commits = [COMMIT]
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                hub._answer(self, body=False)

            def do_GET(self) -> None:
                hub._answer(self, body=True)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler, *, body: bool) -> None:
        path = urlsplit(request.path).path
        if path.startswith("/api/models/"):
            repo, _, revision = path.removeprefix("/api/models/").partition("/revision/")
            self._tell(request, repo, revision)
            return
        repo, _, rest = path[1:].partition("/resolve/")
        commit = rest.partition("/")[0]
        content = self.repos[repo][rest.partition("/")[2]]
        wanted = request.headers.get("Range", "")
        if body:
            self.asked.append((rest.partition("/")[2], wanted))
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        request.send_response(206 if wanted else 200)
        request.send_header("ETag", f'"{etag(content)}"')
        request.send_header("X-Repo-Commit", commit)
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        if body:
            request.wfile.write(content[start:])

    def _tell(self, request: BaseHTTPRequestHandler, repo: str, revision: str) -> None:
        error = "" if repo in self.repos else "RepoNotFound"
        if not error and revision not in ("", "main", *self.commits):
            error = "RevisionNotFound"
        answer: dict[str, Any] = {"error": error}
        if not error:
            commit = revision if revision in self.commits else self.commits[0]
            answer = {"id": repo, "sha": commit, "siblings": []}
            for name, content in self.repos[repo].items():
                one = {"rfilename": name, "size": len(content), "blobId": git_sha1(content)}
                if len(content) > 1000:
                    one["lfs"] = {"sha256": etag(content), "size": len(content), "pointerSize": 1}
                answer["siblings"].append(one)
        data = json.dumps(answer).encode()
        request.send_response(404 if error else 200)
        if error:
            request.send_header("X-Error-Code", error)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


def etag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if len(content) > 1000 else git_sha1(content)


@pytest.fixture
def served() -> Iterator[FakeHub]:
    """A hub with one whole checkpoint and one repository that keeps its file deep inside."""
    fake = FakeHub()
    fake.repos["owner/model"] = {
        "config.json": b"{}",
        "model.safetensors": WEIGHTS,
        "pytorch_model.bin": WEIGHTS,
        "README.md": b"words",
        "onnx/model.safetensors": WEIGHTS,
    }
    fake.repos["owner/net"] = {"checkpoints/run/net.pt": WEIGHTS[:5000], "vlm/config.json": b"{}"}
    yield fake
    fake.close()


MODEL = Part("medvlm", "owner/model", None)
NET = Part("refinenet", "owner/net", COMMIT, "net.pt")


def test_a_plan_names_the_needed_files_with_sizes_and_downloads_nothing(
    served: FakeHub, tmp_path: Path
) -> None:
    files = plan([MODEL, NET], Hub(served.endpoint, tmp_path))

    assert [(file.name, file.size_bytes, file.here) for file in files] == [
        ("config.json", 2, False),
        ("model.safetensors", len(WEIGHTS), False),
        ("checkpoints/run/net.pt", 5000, False),
    ]
    assert served.asked == []


def test_what_was_fetched_is_found_and_not_fetched_again(served: FakeHub, tmp_path: Path) -> None:
    hub = Hub(served.endpoint, tmp_path)

    fetch(plan([MODEL, NET], hub), hub)

    folder, net = find(MODEL, tmp_path), find(NET, tmp_path)
    assert folder is not None
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert net is not None
    assert net.read_bytes() == WEIGHTS[:5000]
    before = list(served.asked)
    again = plan([MODEL, NET], hub)
    assert all(file.here for file in again)
    fetch(again, hub)
    assert served.asked == before


def test_a_broken_download_goes_on_where_it_ended(served: FakeHub, tmp_path: Path) -> None:
    hub = Hub(served.endpoint, tmp_path)
    blobs = tmp_path / "models--owner--model" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{etag(WEIGHTS)}.part").write_bytes(WEIGHTS[:70_000])

    fetch(plan([MODEL], hub), hub)

    assert ("model.safetensors", "bytes=70000-") in served.asked
    folder = find(MODEL, tmp_path)
    assert folder is not None
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert not list(blobs.glob("*.part"))


def test_a_damaged_download_is_removed_and_named(served: FakeHub, tmp_path: Path) -> None:
    hub = Hub(served.endpoint, tmp_path)
    blobs = tmp_path / "models--owner--model" / "blobs"
    blobs.mkdir(parents=True)
    part = blobs / f"{etag(WEIGHTS)}.part"
    part.write_bytes(b"x" * 70_000)
    files = plan([MODEL], hub)

    with pytest.raises(WeightsError, match=r"model\.safetensors of owner/model arrived damaged"):
        fetch(files, hub)
    assert not part.exists()
    assert find(MODEL, tmp_path) is None
    fetch(files, hub)
    assert find(MODEL, tmp_path) is not None


def test_what_is_not_pinned_stays_at_the_commit_that_was_fetched(
    served: FakeHub, tmp_path: Path
) -> None:
    hub = Hub(served.endpoint, tmp_path)
    fetch(plan([MODEL, NET], hub), hub)

    served.commits.insert(0, NEWER)  # the branch moves on

    assert locked_commit(tmp_path, "owner/model", None) == COMMIT
    assert {file.commit for file in plan([MODEL], hub)} == {COMMIT}
    assert {file.commit for file in plan([MODEL], hub, update=True)} == {NEWER}
    folder = find(MODEL, tmp_path)
    assert folder is not None
    assert folder.name == COMMIT
    fetch(plan([MODEL], hub, update=True), hub)
    folder = find(MODEL, tmp_path)
    assert folder is not None
    assert folder.name == NEWER
    assert json.loads((tmp_path / LOCK_NAME).read_text()) == {"owner/model@main": NEWER}


def test_a_commit_that_the_hub_lost_is_one_sentence(served: FakeHub, tmp_path: Path) -> None:
    hub = Hub(served.endpoint, tmp_path)
    fetch(plan([MODEL], hub), hub)
    served.commits = [NEWER]

    with pytest.raises(WeightsError, match=r"no longer has the commit aaaaaaaaaaaa .* --update"):
        plan([MODEL], hub)


def test_a_lock_file_that_is_damaged_is_one_sentence(served: FakeHub, tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text("[1")

    with pytest.raises(WeightsError, match=r"refinerank\.lock\.json in the model cache is damaged"):
        find(MODEL, tmp_path)
    (tmp_path / LOCK_NAME).write_text("[1]")
    with pytest.raises(WeightsError, match="Remove it and run fetch again"):
        plan([MODEL], Hub(served.endpoint, tmp_path))


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Part("medvlm", "owner/nothing", None), "does not exist on the model hub"),
        (Part("medvlm", "owner/model", "b" * 40), "has no revision b"),
        (Part("refinenet", "owner/net", None, "other.pt"), r"owner/net holds no other\.pt"),
    ],
    ids=["repository", "revision", "file"],
)
def test_what_the_hub_does_not_hold_is_one_sentence(
    served: FakeHub, tmp_path: Path, part: Part, words: str
) -> None:
    with pytest.raises(WeightsError, match=words) as caught:
        plan([part], Hub(served.endpoint, tmp_path))

    assert "\n" not in str(caught.value)


def test_without_a_network_the_sentence_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"cannot be reached\. Connect to the internet"):
        plan([MODEL], Hub("http://127.0.0.1:9", tmp_path))


def test_a_disk_that_is_too_small_is_refused_before_the_download(tmp_path: Path) -> None:
    huge = HubFile(MODEL, "model.safetensors", COMMIT, 10**18, "0" * 64, here=False)

    with pytest.raises(WeightsError, match=r"1000000000\.0 GB have to be fetched"):
        refuse_small_disk([huge], Hub(None, tmp_path / "not" / "made"))


def test_sizes_are_told_with_a_unit() -> None:
    assert [in_words(n) for n in (0, 999, 12_300, 16_600_000_000)] == [
        "0 B", "999 B", "12.3 kB", "16.6 GB",
    ]  # fmt: skip


def test_small_files_have_the_hash_that_git_gives_them(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"hello\n")

    # `git hash-object` of these six bytes
    assert digest_of(path, like="0" * 40) == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_the_full_profile_names_what_is_missing_and_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))

    with pytest.raises(WeightsError) as caught:
        RefineRank.load("full", device="cpu")

    assert str(caught.value).startswith(
        "Profile full: UII-AI/uAI-NEXUS-MedVLM-1.0a-7B-RL, IDEA-Research/grounding-dino-base, "
        "proposal_adapter_full.pt of linzher/RefineRank are not on this machine. Fetch once with "
        "'python -m refinerank_core fetch --profile full'"
    )


def test_a_checkpoint_without_one_of_its_shards_is_not_there(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--owner--model" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "one.safetensors").write_bytes(b"")
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    part = Part("medvlm", "owner/model", COMMIT)

    assert find(part, tmp_path) is None
    (snapshot / "two.safetensors").write_bytes(b"")
    assert find(part, tmp_path) == snapshot


def test_a_profile_of_folders_needs_nothing(untrained_profile: Path) -> None:
    profile = load_profile(str(untrained_profile))

    assert parts_of(profile) == []
    assert on_this_machine(profile) == profile
    assert parts_of(load_profile("untrained")) == []


def test_the_command_fetches_a_profile_and_the_pipeline_finds_it(
    untrained_profile: Path,
    served: FakeHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    for name in ("medvlm", "detector"):
        folder = untrained_profile.parent / name
        served.repos[f"lab/{name}"] = {p.name: p.read_bytes() for p in folder.iterdir()}
    net = (untrained_profile.parent / "refinenet.safetensors").read_bytes()
    served.repos["lab/net"] = {"deep/inside/refinenet.safetensors": net}
    profile = json.loads(untrained_profile.read_text())
    profile["medvlm"] |= {"source": "lab/medvlm", "revision": COMMIT}
    profile["detector"]["source"] = "lab/detector"
    profile["refinenet"] |= {"source": "lab/net", "file": "refinenet.safetensors"}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(profile))

    assert main(["fetch", "--profile", str(path), "--endpoint", served.endpoint]) == 0

    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("medvlm     lab/medvlm@aaaaaaaaaaaa  ")
    assert told[3].startswith("to fetch: ")
    fixed = f'fixes it to {COMMIT}; "revision": "{COMMIT}" in the profile pins it everywhere.'
    assert [line.split()[0] for line in told if line.endswith(fixed)] == ["detector", "refinenet"]
    assert told[-1] == "untrained: everything is here and its hashes are right."
    facts = RefineRank.load(str(path), device="cpu").facts
    assert facts.medvlm == "lab/medvlm@aaaaaaaaaaaa"
    assert facts.detector == "lab/detector@aaaaaaaaaaaa"


def test_a_dry_run_says_the_sizes_and_downloads_nothing(
    served: FakeHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    profile = load_profile("full")
    files = {"config.json": b"{}", "model.safetensors": WEIGHTS}
    served.repos |= {profile.medvlm.source: files, profile.detector.source: files}
    served.repos["linzher/RefineRank"] = {"proposal_adapter_full.pt": WEIGHTS[:5000]}
    source = tmp_path / "mine.json"
    told = json.loads((PROFILE_FOLDER / "full.json").read_text())
    told["detector"]["revision"] = None
    source.write_text(json.dumps(told))

    assert (
        main(["fetch", "--profile", str(source), "--dry-run", "--endpoint", served.endpoint]) == 0
    )

    assert capsys.readouterr().out.splitlines()[-1] == "to fetch: 5 of 5 files, 209.8 kB"
    assert served.asked == []
    assert not (tmp_path / "cache").exists()
