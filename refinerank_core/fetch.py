"""Download what a profile names from the model hub: sizes first, then resumed and verified.

The files go into the hub's own cache, where every other program finds them too. The library keeps
no partial file when a download ends early, so the download itself stands here: a file grows under
its hash with the suffix .part and takes its place only when the hash is right.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import http_get, repo_folder_name
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

from refinerank_core.errors import RefineRankError, WeightsError
from refinerank_core.hub import Part, find, parts_of
from refinerank_core.hub_lock import lock_commit, locked_commit
from refinerank_core.profiles import Profile

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class HubFile:
    """One file to have.

    Attributes:
        part: what it belongs to.
        name: path in the repository.
        commit: the commit that it is taken from.
        size_bytes: its size.
        digest: SHA-256 of a large file, Git's blob SHA-1 of a small one; the hub's own etag.
        here: True when the cache holds it already.
    """

    part: Part
    name: str
    commit: str
    size_bytes: int
    digest: str
    here: bool


@dataclass(frozen=True)
class Hub:
    """Which hub, and which cache.

    Attributes:
        endpoint: address of the hub; None is the library's own (HF_ENDPOINT).
        cache: folder of the cache; None is the library's own (HF_HOME, HF_HUB_CACHE).
    """

    endpoint: str | None = None
    cache: Path | None = None

    @property
    def cache_folder(self) -> Path:
        """The cache in use."""
        return self.cache or Path(constants.HF_HUB_CACHE)


_OWN = Hub()


def plan(parts: Iterable[Part], hub: Hub, *, update: bool = False) -> list[HubFile]:
    """Ask the hub which files the parts are, of which size and hash; nothing is downloaded.

    Args:
        parts: what is needed.
        hub: where to ask.
        update: take the newest state of what is not pinned; else the commit that it was fixed to
            when it was first fetched.

    Raises:
        WeightsError: the hub cannot be reached, or a repository, revision or file is not there.
    """
    files: list[HubFile] = []
    for part in parts:
        fixed = None
        if not part.is_pinned and not update:
            fixed = locked_commit(hub.cache_folder, part.repo, part.revision)
        info = _info(part, fixed, hub)
        listed = {str(one.rfilename): one for one in info.siblings or ()}
        names = part.chosen(sorted(listed))
        if not names:
            wanted = part.file or "checkpoint files"
            raise WeightsError(
                f"{part.repo} holds no {wanted}. Correct the profile's {part.role}.source."
            )
        for name in names:
            one = listed[name]
            digest = str(one.lfs.sha256 if one.lfs is not None else one.blob_id)
            blob = _blobs(part, hub) / digest
            files.append(
                HubFile(part, name, str(info.sha), int(one.size or 0), digest, blob.is_file())
            )
    return files


def fetch(
    files: Sequence[HubFile], hub: Hub, *, progress: Callable[[HubFile], object] | None = None
) -> list[Path]:
    """Have every file in the cache, downloaded or resumed where needed, its hash verified.

    The commit of what is not pinned is fixed in the cache's lock file.

    Args:
        files: what plan gave.
        hub: the same as for plan.
        progress: called with each file before it is downloaded.

    Returns:
        Where each file lies.

    Raises:
        WeightsError: the hub went away, the disk is too small, or a hash is not the hub's.
    """
    paths = []
    for file in files:
        if not file.here:
            if progress is not None:
                progress(file)
            _download(file, hub)
        paths.append(_in_its_place(file, hub))
    unpinned = {file.part: file.commit for file in files if not file.part.is_pinned}
    for part, commit in unpinned.items():
        lock_commit(hub.cache_folder, part.repo, part.revision, commit)
    return paths


def fetch_missing(profile: Profile, *, told: Callable[[str], object], hub: Hub = _OWN) -> None:
    """Download what a profile names and this machine lacks; asks nobody where all is here.

    Args:
        profile: what to have.
        told: called with a line for each file that comes.
        hub: which hub and cache.

    Raises:
        WeightsError: the hub cannot be reached, lacks something, or the disk is too small.
    """
    parts = parts_of(profile)
    if all(find(part, hub.cache_folder) for part in parts):
        return
    files = plan(parts, hub)
    refuse_small_disk(files, hub)
    fetch(
        files,
        hub,
        progress=lambda file: told(f"fetching {file.name}, {in_words(file.size_bytes)}"),
    )


def refuse_small_disk(files: Iterable[HubFile], hub: Hub) -> None:
    """Refuse before the download when the disk cannot hold it.

    Raises:
        WeightsError: less is free than has still to come.
    """
    needed = sum(file.size_bytes for file in files if not file.here)
    folder = hub.cache_folder
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise WeightsError(
            f"{in_words(needed)} have to be fetched and {in_words(free)} are free on the disk of "
            "the cache. Make room, or set HF_HOME to a larger disk."
        )


def in_words(size_bytes: float) -> str:
    """A size with its unit: 12.3 MB."""
    for unit in ("B", "kB", "MB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} GB"


def _info(part: Part, fixed: str | None, hub: Hub) -> Any:
    """What the hub says of a repository at the commit it was fixed to, else at its revision."""
    api = HfApi(endpoint=hub.endpoint)
    try:
        return api.model_info(part.repo, revision=fixed or part.revision, files_metadata=True)
    except GatedRepoError as error:
        raise WeightsError(
            f"{part.repo} wants its terms accepted: do so on its page, then log in with "
            "'hf auth login'."
        ) from error
    except RepositoryNotFoundError as error:
        raise WeightsError(
            f"{part.repo} does not exist on the model hub, or is not public. "
            f"Correct the profile's {part.role}.source."
        ) from error
    except RevisionNotFoundError as error:
        if fixed is not None:
            raise WeightsError(
                f"{part.repo} no longer has the commit {fixed[:12]} that was fetched here. "
                "Run the same command with --update to take its newest state."
            ) from error
        raise WeightsError(
            f"{part.repo} has no revision {part.revision}. "
            f"Correct the profile's {part.role}.revision."
        ) from error
    except (httpx2.HTTPError, HfHubHTTPError, OfflineModeIsEnabled, OSError) as error:
        raise _unreachable(part) from error


def _unreachable(part: Part) -> WeightsError:
    return WeightsError(
        f"{part.repo}: the model hub cannot be reached. Connect to the internet and run the same "
        "command again; what has been fetched is kept."
    )


def _blobs(part: Part, hub: Hub) -> Path:
    return hub.cache_folder / repo_folder_name(repo_id=part.repo, repo_type="model") / "blobs"


def _download(file: HubFile, hub: Hub) -> None:
    """Let the file grow under its hash, from where an earlier run left it, and verify it."""
    blob = _blobs(file.part, hub) / file.digest
    growing = blob.with_name(f"{blob.name}.part")
    url = hf_hub_url(file.part.repo, file.name, revision=file.commit, endpoint=hub.endpoint)
    try:
        blob.parent.mkdir(parents=True, exist_ok=True)
        have = growing.stat().st_size if growing.is_file() else 0
        if have > file.size_bytes:
            have = 0
        with growing.open("r+b" if have else "wb") as stream:
            stream.seek(have)
            http_get(
                url,
                stream,
                resume_size=have,
                headers=build_hf_headers(),
                expected_size=file.size_bytes,
                displayed_filename=file.name,
            )
    except (httpx2.HTTPError, HfHubHTTPError, OfflineModeIsEnabled) as error:
        raise _unreachable(file.part) from error
    except OSError as error:
        raise WeightsError(
            f"{file.name} of {file.part.repo} could not be fetched whole "
            f"({error.strerror or 'it arrived cut off'}). Run the same command again."
        ) from error
    if digest_of(growing, like=file.digest) != file.digest:
        growing.unlink()
        raise WeightsError(
            f"{file.name} of {file.part.repo} arrived damaged: its hash is not the hub's. "
            "It was removed; run the same command again."
        )
    growing.replace(blob)


def digest_of(path: Path, *, like: str) -> str:
    """The hash of a file in the form of another: SHA-256, or Git's blob SHA-1 (40 digits)."""
    if len(like) == 40:
        digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    else:
        digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _in_its_place(file: HubFile, hub: Hub) -> Path:
    """Enter a file that the cache holds under its name in its commit, as the library does."""
    try:
        place = hf_hub_download(
            file.part.repo,
            file.name,
            revision=file.commit,
            cache_dir=hub.cache_folder,
            endpoint=hub.endpoint,
        )
    except (httpx2.HTTPError, HfHubHTTPError, OfflineModeIsEnabled) as error:
        raise _unreachable(file.part) from error
    except OSError as error:
        raise RefineRankError(
            f"{file.name} cannot be written into the cache ({error.strerror})."
        ) from error
    _remember_revision(file, hub)
    return Path(place)


def _remember_revision(file: HubFile, hub: Hub) -> None:
    """Note which commit a branch meant, so that it is found without the internet."""
    wanted = file.part.revision or "main"
    if wanted != file.commit:
        ref = _blobs(file.part, hub).parent / "refs" / wanted
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(file.commit)
