"""COCO detection JSON: an image a frame, boxes as x y width height."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from refinerank_core.errors import FormatError
from refinerank_core.formats import strict_json
from refinerank_core.formats.rows import (
    UNLABELLED,
    Asked,
    Fault,
    Reading,
    Row,
    RowError,
    Written,
    based,
    losses,
    numbers_of,
    placed,
    stem,
)

_IMAGE = ("time_s", "frame_s", "frames", "video_sha256", "dataset", "procedure")
_ATTRIBUTES = tuple(
    "question method row_id qa_type case_id status reviewer decided_at best confidence comment "
    "seconds".split()
)
HELD = ("video", "frame_index", "size_wh", "box", "label", "score", "tags", *_IMAGE, *_ATTRIBUTES)
_NUMBER = re.compile(r"(\d+)$")


def write(rows: list[Row]) -> Written:
    """Categories from 1 in order of their names; images without boxes stay."""
    labels = sorted({row.label or UNLABELLED for row in rows if row.box})
    category = {label: k for k, label in enumerate(labels, start=1)}
    images: dict[tuple[str, int | None, float | None], dict[str, Any]] = {}
    annotations: list[dict[str, Any]] = []
    for row in rows:
        key = (row.video, row.frame_index, None if row.frame_index is not None else row.time_s)
        image = images.setdefault(key, _image(row, len(images) + 1))
        if row.box is None:
            continue
        x0, y0, x1, y1 = row.box
        extra = {name: getattr(row, name) for name in _ATTRIBUTES}
        one: dict[str, Any] = {
            "id": len(annotations) + 1,
            "image_id": image["id"],
            "category_id": category[row.label or UNLABELLED],
            "bbox": [x0, y0, x1 - x0, y1 - y0],
            "area": (x1 - x0) * (y1 - y0),
            "iscrowd": 0,
            "attributes": {**extra, "tags": list(row.tags)},
        }
        if row.score is not None:
            one["score"] = row.score
        annotations.append(one)
    document = {
        "info": {"description": "RefineRank reviews; boxes in display pixels", "version": "1"},
        "licenses": [],
        "images": list(images.values()),
        "categories": [{"id": k, "name": label} for label, k in category.items()],
        "annotations": annotations,
    }
    empty = sum(row.box is None for row in rows)
    also = (f"{empty} rows without a box keep their image only",) if empty else ()
    content = (strict_json.dumps(document, indent=1) + "\n").encode()
    return Written({"annotations.json": content}, losses(rows, HELD, *also))


def _image(row: Row, number: int) -> dict[str, Any]:
    width, height = row.size_wh or (0, 0)
    place = f"{row.frame_index:06d}" if row.frame_index is not None else f"{row.time_s}s"
    return {
        "id": number,
        "file_name": f"{stem(row.video)}/{place}.jpg",
        "width": width,
        "height": height,
        "video": row.video,
        "frame_index": row.frame_index,
        **{name: getattr(row, name) for name in _IMAGE},
    }


def read(files: dict[str, bytes], asked: Asked) -> Reading:
    """Read a data set file. Category ids may start at 0 and have gaps.

    The frame is the image's `frame_index`, else the number at the end of its file name.
    """
    rows: list[Row] = []
    faults: list[Fault] = []
    for content in files.values():
        text = content.decode("utf-8-sig")
        document = strict_json.loads_unchecked(text)
        if not isinstance(document, dict):
            raise FormatError(
                "The file is a list of results. Import the COCO data set file with its images."
            )
        names = {_key(one): str(one.get("name", "")) for one in _objects(document, "categories")}
        images = {_key(one): one for one in _objects(document, "images")}
        used = set()
        for line, one in strict_json.elements(text, "annotations"):
            try:
                strict_json.refuse_not_finite(one)
                rows.append(_row(one, images, names, line, asked))
                used.add(str(one["image_id"]))
            except (RowError, FormatError) as error:
                faults.append(Fault(line, str(error)))
        for key, image in images.items():
            if key not in used and image.get("video"):  # our own files keep what was not found
                rows.append(_placeless(image, asked))
    return Reading(tuple(rows), tuple(faults))


def _objects(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = document.get(name)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise FormatError(f"The file has no list of {name}.")
    return found


def _key(one: Mapping[str, Any]) -> str:
    return str(one.get("id"))


def _row(
    one: Any, images: Mapping[str, Any], names: Mapping[str, str], line: int, asked: Asked
) -> Row:
    if not isinstance(one, dict):
        raise RowError("an annotation is an object")
    image = images.get(str(one.get("image_id")))
    if image is None:
        raise RowError(f"image {one.get('image_id')} is not in the file")
    label = names.get(str(one.get("category_id")))
    if label is None:
        raise RowError(f"category {one.get('category_id')} is not in the file")
    empty = _placeless(image, asked)
    box = placed(
        numbers_of(one.get("bbox")),
        space=asked.space or "pixels_xywh",
        stated_wh=_size(image),
        asked=asked,
        video=empty.video,
    )
    extra = one.get("attributes")
    extra = extra if isinstance(extra, dict) else {}
    known = {name: extra[name] for name in _ATTRIBUTES if extra.get(name) is not None}
    facts = {name: getattr(empty, name) for name in ("video", "frame_index", "size_wh", *_IMAGE)}
    score = one.get("score")
    return Row(
        **facts,
        **known,
        box=box,
        label=label,
        score=float(score) if isinstance(score, int | float) else None,
        tags=tuple(str(tag) for tag in extra.get("tags") or ()),
        line=line,
    )


def _size(image: Mapping[str, Any]) -> tuple[int, int] | None:
    try:
        width, height = int(image["width"]), int(image["height"])
    except (KeyError, TypeError, ValueError):
        return None
    return (width, height) if width > 0 and height > 0 else None


def _placeless(image: Mapping[str, Any], asked: Asked) -> Row:
    """The row of an image without its box."""
    known = {name: image[name] for name in _IMAGE if image.get(name) is not None}
    path = PurePath(str(image.get("file_name", "")).replace("\\", "/"))
    video = str(image.get("video") or _video(path))
    index = image.get("frame_index")
    if index is None and known.get("time_s") is None:
        digits = _NUMBER.search(path.stem)
        if digits is None:
            raise RowError(f"{path.name}: the file name does not end in a frame number")
        index = based(int(digits[1]), asked, own_base=0, video=video)
    elif index is not None:
        index = based(int(index), Asked(frames=asked.frames), own_base=0, video=video)
    size_wh = asked.size_of(video, _size(image))
    return Row(video=video, frame_index=index, size_wh=size_wh, **known)


def _video(path: PurePath) -> str:
    """The folder that a frame lies in, else what stands before its number."""
    if len(path.parts) > 1:
        return path.parts[-2]
    return _NUMBER.sub("", path.stem).rstrip("_-") or path.stem
