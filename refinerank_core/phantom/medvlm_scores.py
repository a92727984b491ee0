"""How well a small MedVLM does on stills of scenes that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from refinerank_core.answers import match_times, parse_answer
from refinerank_core.boxes import iou_matrix
from refinerank_core.boxes_torch import iou
from refinerank_core.models.medvlm import MedVLMSettings, QwenMedVLM
from refinerank_core.phantom.medvlm_cells import NOTHING
from refinerank_core.phantom.medvlm_language import LanguageRun
from refinerank_core.phantom.medvlm_lessons import draw_lesson, query_answer
from refinerank_core.phantom.stills import Still
from refinerank_core.question import parse_query_answer, parse_question
from refinerank_core.structures import Frame

Tally = dict[str, dict[str, list[float]]]
Table = dict[str, dict[str, float]]


@torch.no_grad()
def score_q_last(
    run: LanguageRun, stills: Sequence[Still], *, questions: int = 4, seed: int = 7, batch: int = 16
) -> Table:
    """Read the temporary heads on q_last, by procedure and by kind of question.

    Returns:
        Group -> "count"; "name": share of right classes; "hit": share whose highest cell lies on
        the thing; "iou": of the box read from q_last.
    """
    rng = np.random.default_rng(seed)
    tally: Tally = {}
    for start in range(0, len(stills), batch):
        seen = run.viewer.look(stills[start : start + batch], None)
        times = [12.5] * len(seen.truths)
        lessons = [
            [run.draw(seen, place, [time_s], rng) for _ in range(questions)]
            for place, time_s in enumerate(times)
        ]
        asked = run.ask(seen, lessons, times)
        names = run.heads.name(asked).argmax(dim=-1)
        boxes = run.heads.box(asked).sigmoid()
        cells = run.heads.point(asked, seen.merged).argmax(dim=-1)
        columns = seen.grid_hw[1] // 2
        for place, group in enumerate(lessons):
            for turn, lesson in enumerate(group):
                for key in ("all", seen.procedures[place], lesson.asked.kind):
                    sums = tally.setdefault(key, {})
                    sums.setdefault("name", []).append(float(names[place, turn] == lesson.name))
                    if lesson.name == NOTHING:
                        continue
                    truth = torch.from_numpy(lesson.boxes[:1])
                    overlap = float(iou(boxes[place, turn][None], truth))
                    row, column = divmod(int(cells[place, turn]), columns)
                    x0, y0, x1, y1 = lesson.boxes[0] * np.tile((columns, seen.grid_hw[0] // 2), 2)
                    hit = x0 < column + 1 and x1 > column and y0 < row + 1 and y1 > row
                    sums.setdefault("iou", []).append(overlap)
                    sums.setdefault("hit", []).append(float(hit))
    return _means(tally)


def score_answers(
    folder: Path, stills: Sequence[Still], *, questions: int = 2, seed: int = 8
) -> Table:
    """Let the written checkpoint answer through the adapter, as the product does.

    Returns:
        Group -> "count"; "query": share of right detector phrases; "iou": of the direct answers,
        0 where none can be read; "read": share of answers that hold a box for the time.
    """
    settings = MedVLMSettings(source=str(folder), blocks=(1,))
    model = QwenMedVLM(settings, torch.device("cpu"), torch.float32)
    rng = np.random.default_rng(seed)
    tally: Tally = {}
    for number, still in enumerate(stills):
        frame = Frame(index=number, time_s=12.5, image=still.image)
        resized = model.see([frame], "scores")[0].resized_wh
        for _ in range(questions):
            lesson = draw_lesson(rng, [still.truth], [12.5], still.procedure, in_full=True)
            if lesson is None:
                continue
            words = model.query(parse_question(lesson.text))
            right = words.source == "medvlm" and words.phrases == parse_query_answer(
                query_answer(lesson.asked)
            )
            answer = model.answer([frame], [12.5], lesson.text, "scores")
            found = match_times(parse_answer(answer.text), [12.5], tolerance_s=0.5)[0]
            for key in ("all", still.procedure, lesson.asked.kind):
                sums = tally.setdefault(key, {})
                sums.setdefault("query", []).append(float(right))
                if lesson.name == NOTHING:
                    continue
                sums.setdefault("read", []).append(float(found is not None))
                overlap = 0.0
                if found is not None:
                    told = np.array([found], np.float32)
                    truth = (lesson.boxes[:1] * np.tile(resized, 2)).astype(np.float32)
                    overlap = float(iou_matrix(told, truth)[0, 0])
                sums.setdefault("iou", []).append(overlap)
    return _means(tally)


def _means(tally: Tally) -> Table:
    return {
        group: {
            "count": float(max(map(len, sums.values()))),
            **{key: round(float(np.mean(values)), 4) for key, values in sums.items()},
        }
        for group, sums in sorted(tally.items())
    }
