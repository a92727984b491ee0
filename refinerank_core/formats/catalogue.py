"""The formats by name, and files in and out of them."""

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from refinerank_core.errors import FormatError
from refinerank_core.formats import coco, cvat, jsonl, label_studio, medvidbench, table, yolo
from refinerank_core.formats.rows import Asked, Reading, Row, Written

LARGEST_BYTES = 2**30  # of all files of one import together, unpacked


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes:
        name: as on the command line. title: as on the screen.
        write: rows to files. read: files to rows; None: goes out only, or needs a companion.
    """

    name: str
    title: str
    write: Callable[[list[Row]], Written]
    read: Callable[[dict[str, bytes], Asked], Reading] | None


FORMATS: Mapping[str, Format] = {
    one.name: one
    for one in (
        Format("jsonl", "JSON lines (everything)", jsonl.write, jsonl.read),
        Format("csv", "CSV for spreadsheets", table.write, table.read),
        Format("coco", "COCO", coco.write, coco.read),
        Format("cvat", "CVAT video 1.1", cvat.write, cvat.read),
        Format("label-studio", "Label Studio", label_studio.write, label_studio.read),
        Format("yolo", "YOLO", yolo.write, yolo.read),
        Format("medvidbench", "MedVidBench rows", medvidbench.write, medvidbench.read),
        Format("medvidbench-submission", "MedVidBench submission", medvidbench.write_submission,
               None),
    )
}  # fmt: skip


def read_rows(
    name: str,
    files: dict[str, bytes],
    asked: Asked,
    companion: dict[str, bytes] | None = None,
) -> Reading:
    """Read files of a format.

    Args:
        name: of the format.
        files: name -> content.
        asked: what the importing person said.
        companion: the question rows that a submission answers.

    Raises:
        FormatError: the files as a whole are not of this format.
    """
    try:
        if name == "medvidbench-submission":
            if not companion:
                raise FormatError("A submission needs its question rows. Give them with --rows.")
            return medvidbench.read_submission(files, asked, companion)
        reader = FORMATS[name].read
        if reader is None:
            raise FormatError(f"{FORMATS[name].title} cannot be imported.")
        return reader(files, asked)
    except UnicodeDecodeError as error:
        raise FormatError("The file is not UTF-8 text. Save it as UTF-8.") from error


def load_files(path: Path) -> dict[str, bytes]:
    """The files of an import: one file, a folder, or a ZIP that is read without unpacking it.

    Raises:
        FormatError: nothing to read, or more than LARGEST_BYTES.
    """
    try:
        if path.is_dir():
            found = sorted(one for one in path.rglob("*") if one.is_file())
            if sum(one.stat().st_size for one in found) > LARGEST_BYTES:
                raise FormatError(f"{path.name}: more than 1 GiB. Import it in parts.")
            return {str(one.relative_to(path)): one.read_bytes() for one in found}
        content = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path.name}: cannot be read ({error.strerror}).") from error
    return unpack(path.name, content)


def unpack(name: str, content: bytes) -> dict[str, bytes]:
    """The files in an upload: itself, or the members of a ZIP."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return {name: content}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [one for one in archive.infolist() if not one.is_dir()]
            if sum(one.file_size for one in members) > LARGEST_BYTES:
                raise FormatError(f"{name}: more than 1 GiB unpacked. Import it in parts.")
            return {one.filename: archive.read(one) for one in members}
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise FormatError(f"{name}: the ZIP is damaged or locked. Pack it again.") from error


def pack(written: Written) -> tuple[str, bytes]:
    """One file to hand out: the only one, or a ZIP of all; its name and content."""
    if len(written.files) == 1:
        return next(iter(written.files.items()))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in written.files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
    return "reviews.zip", buffer.getvalue()
