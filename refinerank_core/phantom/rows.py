"""Phantom questions as MedVidBench rows: frames in a folder, one JSON list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from refinerank_core.phantom.questions import PhantomQuestion, ask
from refinerank_core.phantom.scene import Scene

JPEG_QUALITY = 92
SAMPLE_EVERY = 5  # source frames per stored one: 0.2 s at 25 fps, the grid that times lie on
ROWS_FILE = "rows.json"
FRAME_WH = (448, 252)


def video_id(scene: Scene) -> str:
    """Return the name of a scene's video, without "_": what follows the last one is the frame."""
    looks = "" if scene.shift is None else f"-shift{scene.shift.seed}"
    return f"phantom-{scene.procedure.replace(' ', '-')}-{scene.seed}{looks}"


def data_source(scene: Scene) -> str:
    """Return the data set's name of a procedure, such as "PhantomLaparoscopy"."""
    return "Phantom" + "".join(word.capitalize() for word in scene.procedure.split())


def write_frames(scene: Scene, folder: Path, *, size_wh: tuple[int, int]) -> list[Path]:
    """Write every SAMPLE_EVERY-th frame as a JPEG named after video and frame number."""
    home = folder / video_id(scene)
    home.mkdir(parents=True, exist_ok=True)
    paths = []
    for index in range(0, scene.frame_count, SAMPLE_EVERY):
        image, _ = scene.render(index / scene.fps, size_wh)
        settings = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
        _, coded = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), settings)
        path = home / f"{video_id(scene)}_{index:06d}.jpg"
        path.write_bytes(coded.tobytes())
        paths.append(path)
    return paths


def row_of(
    question: PhantomQuestion, scene: Scene, frames: Sequence[str], row_id: str
) -> dict[str, object]:
    """Return one question as a MedVidBench row.

    Args:
        question: asked about the scene.
        scene: whose frames these are.
        frames: paths of the stored frames, as they shall stand in the row.
        row_id: of the row.
    """
    boxes = {
        f"{time:g}": [round(float(edge), 1) for edge in box]
        for time, box in zip(question.times_s, question.boxes, strict=False)
    }
    return {
        "id": row_id,
        "qa_type": "stg",
        "data_source": data_source(scene),
        "video": list(frames),
        "sampled_video_frames": list(frames),
        "metadata": {
            "fps": scene.fps / SAMPLE_EVERY,  # the benchmark means the rate of sampling
            "video_id": video_id(scene),
            "input_video_start_frame": 0,
            "input_video_end_frame": scene.frame_count - 1,
        },
        "conversations": [
            {"from": "human", "value": f"<video>\n{question.text}"},
            {"from": "gpt", "value": question.answer()},
        ],
        "struc_info": [{"bbox_dict": boxes}],
    }


def write_rows(
    scenes: Sequence[Scene],
    folder: Path,
    *,
    size_wh: tuple[int, int],
    per_scene: int,
    seed: int,
) -> Path:
    """Write frames and questions of some scenes; return the path of the JSON list.

    Args:
        scenes: to ask about.
        folder: gets one folder of frames a scene, and rows.json.
        size_wh: of the frames and boxes.
        per_scene: questions for each scene, all with an answer on stored frames.
        seed: of the questions.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, object]] = []
    for place, scene in enumerate(scenes):
        rng = np.random.default_rng([seed, place, scene.seed])
        frames = [
            str(path.relative_to(folder)) for path in write_frames(scene, folder, size_wh=size_wh)
        ]
        asked = 0
        for _ in range(20 * per_scene):  # some draws leave nothing unambiguous to ask
            question = ask(scene, rng, size_wh=size_wh)
            if question is None or question.instance is None:
                continue
            if round(question.times_s[-1] * scene.fps) <= (len(frames) - 1) * SAMPLE_EVERY:
                row_id = f"{video_id(scene)}-q{asked}"
                rows.append(row_of(question, scene, frames, row_id))
                asked += 1
            if asked == per_scene:
                break
    path = folder / ROWS_FILE
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return path
