"""From what the core found to what the screen shows: plain rows, numbers and sentences. No Gradio.

Nothing here is HTML: the browser puts every text in place as text.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from demo.growth import Growth
from demo.runs import Step
from demo.samples import Sample
from demo.services import ProfileCard
from demo.sessions import SAMPLE_TOKEN, Answer, Clip, answered_questions
from refinerank_core.boxes import iou
from refinerank_core.decode import ranked_choices
from refinerank_core.grounding import Box, Candidate, TimeGrounding
from refinerank_core.structures import Choice
from refinerank_core.video import Video

if TYPE_CHECKING:
    from refinerank_core.responses import ResponseMaps

Plain = dict[str, Any]
_MAP_STEPS = 32767  # cosines travel as 16 bit whole numbers
_EVEN_S = 2e-6  # time stamps that keep a step this exactly are told by the step


def profile_facts(card: ProfileCard) -> Plain:
    """The badge."""
    return {
        "name": card.name,
        "label": card.label,
        "badge": card.badge,
        "caution": card.caution,
        "kind": "untrained" if card.untrained else "phantom" if card.phantom else "full",
        "ids": [card.medvlm, card.detector, card.refinenet],
        "device": card.device,
    }


def sample_facts(samples: Sequence[Sample]) -> list[Plain]:
    """The list of bundled clips."""
    return [
        {
            "name": one.name,
            "token": SAMPLE_TOKEN + one.name,
            "title": one.title,
            "about": one.about,
        }
        for one in samples
    ]


def clip_facts(clip: Clip, opened_at: int) -> Plain:
    """A clip and its table of times; opened_at is the frame to start on."""
    video, sample = clip.video, clip.sample
    width, height = video.size_wh
    return {
        "token": clip.token,
        "sample": sample.name if sample else None,
        "title": sample.title if sample else video.name,
        "about": sample.about if sample else "Your upload: removed when you leave.",
        "count": len(video),
        "width": width,
        "height": height,
        "duration_s": round(float(video.duration_s), 6),
        "codec": video.codec,
        "times": time_table(video),
        "questions": [one.text for one in sample.questions] if sample else [],
        "stored": answered_questions(sample) if sample else [],
        "warnings": list(video.warnings),
        "index": opened_at,
    }


def time_table(video: Video) -> Plain:
    """Every frame's second: one step where frames are even, else base64 of float64."""
    times = video.times_s
    if len(times) == 1:
        return {"step": 0.0}
    step = float(times[-1]) / (len(times) - 1)
    if np.abs(times - step * np.arange(len(times))).max() <= _EVEN_S:
        return {"step": step}
    return {"packed": base64.b64encode(times.astype("<f8").tobytes()).decode()}


def answer_facts(answer: Answer, opened_at: int | None = None) -> Plain:
    """An answer without its pools, which are asked for one by one; the first comes along.

    Args:
        answer: to show.
        opened_at: frame the visitor is on: its pool comes along, where it was answered.
    """
    grounding = answer.grounding
    frames = [time.frame_index for time in grounding.times]
    first = frames.index(opened_at) if opened_at in frames else 0
    return {
        "token": answer.token,
        "clip": answer.clip.token,
        "text": grounding.question.text,
        "target": grounding.question.target,
        "phrases": list(grounding.query.phrases),
        "query_source": grounding.query.source,
        "times": [_time_facts(answer, k) for k in range(len(grounding.times))],
        "warnings": list(grounding.warnings),
        "seconds": dict(grounding.seconds),
        "note": origin_note(answer),
        "running": answer.running,
        "version": f"{len(grounding.times)}/{len(answer.unwritten)}/{answer.running}",
        "stored": answer.reused is None,
        "asked_for": asked_for(answer),
        "spent": [f"{name} {spent:.2f} s" for name, spent in grounding.seconds.items()],
        "inter_block": grounding.profile.inter_block,
        "first": first,
        "pool": pool_facts(grounding.times[first], first) if grounding.times else None,
        "answered_by": [
            grounding.profile.medvlm,
            grounding.profile.detector,
            grounding.profile.refinenet,
        ],
    }


def asked_for(answer: Answer) -> str:
    """What the detector was asked for, and whose words these are."""
    query = answer.grounding.query
    whose = "the MedVLM's words" if query.source == "medvlm" else "words by rule"
    return f"Detector asked for: {', '.join(query.phrases)} ({whose})."


def origin_note(answer: Answer) -> str:
    """Where the figures came from: kept beside the clip, or computed, and what was reused."""
    grounding = answer.grounding
    if answer.reused is None:
        return f"Answer kept with this clip, by {grounding.profile.refinenet}."
    count = len({time.frame_index for time in grounding.times})
    spent = sum(grounding.seconds.values())
    if answer.running:
        return f"Still computing on {grounding.profile.device}: {spent:.1f} s so far."
    reused = (
        f"vision features of {answer.reused} of {count} frame{'s'[: count != 1]} from the cache"
        if answer.reused
        else "no frame was in the cache"
    )
    return f"Computed in {spent:.1f} s on {grounding.profile.device}; {reused}."


def _time_facts(answer: Answer, k: int) -> Plain:
    time = answer.grounding.times[k]
    best, words, detector = (
        time.answers.refinerank,
        time.answers.medvlm,
        time.answers.medvlm_groundingdino,
    )
    truth = answer.truth.get(time.frame_index)
    boxes = {"refinerank": best.box, "medvlm": words.box, "detector": detector.box}
    return {
        "k": k,
        "requested_s": time.requested_s,
        "frame": time.frame_index,
        "frame_s": time.frame_s,
        "refinerank": {
            "box": best.box,
            "score": best.score,
            "margin": best.margin,
            "candidate": best.candidate_id,
            "refined": best.refined,
        },
        "medvlm": {"box": words.box, "text": words.text, "state": _writing(answer, k)},
        "detector": {
            "box": detector.box,
            "confidence": detector.confidence,
            "candidate": detector.candidate_id,
        },
        "truth": truth,
        "iou": {name: overlap(box, truth) for name, box in boxes.items()} if truth else None,
        "why": why(time),
    }


def _writing(answer: Answer, k: int) -> str:
    """Whether the MedVLM's own answer is there, is being written, or will not come."""
    if k not in answer.unwritten:
        return "written"
    return "writing" if answer.running else "stopped"


def overlap(box: Box | None, other: Box | None) -> float | None:
    """IoU of two boxes, None where one is absent."""
    if box is None or other is None:
        return None
    return round(float(iou(np.array(box), np.array(other))), 4)


def ranked(time: TimeGrounding) -> list[Choice]:
    """The kept joint pool, best first; the answer leads even where smoothing chose another box."""
    kept = [
        Choice(row, refined, _score(time.candidates[row], refined)) for row, refined in time.kept
    ]
    best = time.answers.refinerank
    chosen = (best.candidate_id, best.refined)
    return sorted(ranked_choices(kept), key=lambda one: (one.candidate, one.refined) != chosen)


def _score(candidate: Candidate, refined: bool) -> float:
    return candidate.score_refined if refined else candidate.score_original


def why(time: TimeGrounding) -> str:
    """One sentence, made of figures, on why the top box is on top."""
    best = time.answers.refinerank
    row = time.candidates[best.candidate_id]
    order = ranked(time)
    lead = (
        f"Margin {short(best.margin)} over rank 2"
        if len(order) > 1
        else "The only box that was kept, so nothing to compare it with"
    )
    if best.margin < 0:
        lead = (
            f"Chosen to keep the box steady over time, {short(-best.margin)} below the best score"
        )
    if best.refined and row.refined_box is not None:
        shift = overlap(row.box, row.refined_box)
        origin = f"refined from #{row.id + 1} (IoU {shift:.2f} with the original)"
    else:
        origin = f"the original box #{row.id + 1}, better than its refined one"
        if row.score_refined > row.score_original:
            origin = f"the original box #{row.id + 1}"
    return f"{lead}; {origin}; {_detector_words(row, len(time.candidates))}."


def short(value: float) -> str:
    """Two decimals; two figures where that would be nothing."""
    return f"{value:.2f}" if value == 0 or abs(value) >= 0.01 else f"{value:.2g}"


def _detector_words(row: Candidate, count: int) -> str:
    if row.confidence is None:
        return "the detector had found nothing and fixed anchors stood in"
    if row.id == 0:
        return f"also the detector's first choice of {count}, confidence {row.confidence:.2f}"
    return f"the detector had it at rank {row.id + 1} of {count}, confidence {row.confidence:.2f}"


def pool_facts(time: TimeGrounding, k: int) -> Plain:
    """All candidates of one time, and the kept joint pool in rank order."""
    return {
        "k": k,
        "rows": [_row_facts(one) for one in time.candidates],
        "order": [[one.candidate, int(one.refined)] for one in ranked(time)],
    }


def _row_facts(row: Candidate) -> Plain:
    return {
        "box": row.box,
        "refined": row.refined_box,
        "source": row.source,
        "phrase": row.phrase,
        "confidence": row.confidence,
        "native": row.native_score,
        "parent": row.parent,
        "s": row.score_original,
        "s_hat": row.score_refined,
        "delta": row.delta,
        "shift": overlap(row.box, row.refined_box),
        "kept": [row.kept_original, row.kept_refined],
    }


def maps_facts(maps: ResponseMaps, inter_block: int) -> Plain:
    """Cosines of every map as whole numbers (1 = 32767), base64, row by row."""
    return {
        "target": maps.target,
        "maps": [
            {
                "name": name,
                "label": _map_label(name),
                "feeds": name == f"block{inter_block}",
                "rows": values.shape[0],
                "columns": values.shape[1],
                "low": float(values.min()),
                "high": float(values.max()),
                "packed": _packed(values),
            }
            for name, values in maps.raw.items()
        ],
    }


def _map_label(name: str) -> str:
    return "Final grid" if name == "final" else f"Block {name.removeprefix('block')}"


def _packed(values: NDArray[np.float16]) -> str:
    whole = np.clip(np.rint(values.astype(np.float64) * _MAP_STEPS), -_MAP_STEPS, _MAP_STEPS)
    return base64.b64encode(whole.astype("<i2").tobytes()).decode()


def stopped_words(growth: Growth) -> str:
    """What is left on the screen of a question that was stopped."""
    if growth.answer is None:
        return "Stopped before a time was answered. What was on the screen is still there."
    return " ".join(growth.answer.grounding.warnings)


def progress_facts(step: Step, stages: Sequence[str]) -> Plain:
    """A running question."""
    return {
        "state": "stopping" if step.stopping else "running",
        "stages": [{"name": name, "done": step.done.get(name, 0)} for name in stages],
        "total": step.total,
        "elapsed_s": round(step.elapsed_s, 2),
        "left_s": None if step.left_s is None else round(step.left_s, 1),
    }
