"""A run step by step: what is known of a question is told as soon as it is known.

Times are answered in groups, as many as the MedVLM answers together; within a group they are
ranked in batches, and each batch is told before the MedVLM writes its own answer for the group.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import cv2

from refinerank_core.assembly import TimeWork, smoothed, time_grounding, video_facts
from refinerank_core.calibration import Calibration
from refinerank_core.candidates import build_pool
from refinerank_core.decode import filter_and_choose
from refinerank_core.direct import direct_answers
from refinerank_core.grounding import (
    Grounding,
    MedVLMAnswer,
    ProfileFacts,
    QueryFacts,
    QuestionFacts,
)
from refinerank_core.models.protocols import Detector, Encoding, MedVLM
from refinerank_core.profiles import Profile
from refinerank_core.progress import UNWRITTEN, Begun, Grounded, News, Passed, Ranked, Written
from refinerank_core.question import parse_question
from refinerank_core.reencode import reencoded
from refinerank_core.refinenet import RefineNet, refine, region_features, unrefined
from refinerank_core.responses import ResponseMaps, response_maps
from refinerank_core.structures import (
    CandidatePool,
    Detections,
    Frame,
    Query,
    Question,
    Ranking,
    Refinement,
)
from refinerank_core.times import check_times
from refinerank_core.video import Video

_BLANK_SPREAD = 2.0  # of any channel


@dataclass(frozen=True, eq=False)
class Asked:
    """A question that is understood, on an open video.

    Attributes:
        video: open.
        text: the clean question.
        times_s: K requested times, rising.
        frames: K indices of the frames that answer them.
        query: what the detector is asked for.
    """

    video: Video
    text: str
    times_s: tuple[float, ...]
    frames: tuple[int, ...]
    query: Query


@dataclass
class Tally:
    """Seconds and warnings that a run gathers on its way, of `total` requested times."""

    total: int
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        started = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def passed(self, name: str, done: int) -> Passed:
        """The news that `done` requested times have passed a stage."""
        return Passed(name, done, self.total)

    def spent(self) -> dict[str, float]:
        """Seconds of each stage so far."""
        return {name: round(spent, 6) for name, spent in self.seconds.items()}

    def warn(self, *sentences: str) -> None:
        """Keep each warning once; an empty one says nothing."""
        known = ("", *self.warnings)
        self.warnings += [one for one in dict.fromkeys(sentences) if one not in known]


class Steps:
    """The steps of a run with one line-up of models."""

    def __init__(
        self,
        profile: Profile,
        medvlm: MedVLM,
        detector: Detector,
        nets: Sequence[RefineNet],
        facts: ProfileFacts,
    ) -> None:
        self._profile = profile
        self._medvlm = medvlm
        self._detector = detector
        self._nets = nets
        knots = profile.refinenet.calibration
        self._calibration = Calibration(knots) if knots else None
        self._facts = facts

    def run(
        self,
        video: Video,
        question: str,
        times: Sequence[float] | None,
        *,
        current_s: float,
        smooth: bool,
        with_maps: bool,
        batch: int | None,
    ) -> Generator[News, None, None]:
        """See `RefineRank.steps`."""
        parsed = parse_question(question, duration_s=video.duration_s)
        requested = requested_times(parsed, times, current_s, video.duration_s)
        frames = tuple(video.nearest(time_s)[0] for time_s in requested)
        tally = Tally(total=len(requested))
        tally.warn(*video.warnings)
        with tally.stage("query"):
            query = self._medvlm.query(parsed)
        yield tally.passed("query", len(requested))
        asked = Asked(video, parsed.text, requested, frames, query)
        begun = Grounding(
            video=video_facts(video),
            question=QuestionFacts(text=parsed.text, times_s=requested, target=parsed.target),
            profile=self._facts,
            query=QueryFacts.model_validate(vars(query)),
            times=(),
            seconds={},
            warnings=(),
        )
        yield Begun(begun)
        work: list[TimeWork] = []
        maps: dict[int, ResponseMaps] = {}
        for group in portions(range(len(requested)), self._profile.medvlm.answer_frames):
            done, mapped = yield from self._group(tally, asked, group, batch, with_maps)
            work += done
            maps |= mapped
        if smooth:
            work, changed = smoothed(work)
            for k in changed if with_maps else ():
                maps |= self._maps([video.read_frame(work[k].frame_index)], [work[k]], k, asked)
        whole = {
            "times": tuple(time_grounding(one) for one in work),
            "seconds": tally.spent(),
            "warnings": tuple(tally.warnings),
        }
        yield Grounded(begun.model_copy(update=whole), maps)

    def _group(
        self, tally: Tally, asked: Asked, group: range, batch: int | None, with_maps: bool
    ) -> Generator[News, None, tuple[list[TimeWork], dict[int, ResponseMaps]]]:
        """All steps for the times that the MedVLM answers together."""
        work: list[TimeWork] = []
        maps: dict[int, ResponseMaps] = {}
        shown: list[Frame] = []
        for part in portions(group, batch or len(group)):
            with tally.stage("frames"):
                frames = [asked.video.read_frame(asked.frames[k]) for k in part]
            tally.warn(*blank_warnings(frames))
            yield tally.passed("frames", part.stop)
            found, resized_wh = yield from self._found(tally, asked, part, frames)
            mapped: dict[int, ResponseMaps] = {}
            if with_maps:
                with tally.stage("maps"):
                    mapped = self._maps(frames, found, part.start, asked)
                yield tally.passed("maps", part.stop)
            plain = tuple(time_grounding(one) for one in found)
            yield Ranked(part.start, plain, mapped, tally.spent(), tuple(tally.warnings))
            work += found
            maps |= mapped
            shown += frames
        with tally.stage("answer"):
            answers = self._answers(tally, asked, group, shown, resized_wh)
        yield tally.passed("answer", group.stop)
        yield Written(group.start, answers, tally.spent(), tuple(tally.warnings))
        return [replace(one, direct=d) for one, d in zip(work, answers, strict=True)], maps

    def _found(
        self, tally: Tally, asked: Asked, part: range, frames: Sequence[Frame]
    ) -> Generator[News, None, tuple[list[TimeWork], tuple[int, int]]]:
        """Encode, detect and rank a batch; also the size at which the MedVLM saw its frames."""
        times_s = asked.times_s[part.start : part.stop]
        key = asked.video.sha256
        with tally.stage("encode"):
            encodings = self._medvlm.encode(frames, times_s, asked.text, key)
            tally.warn(*self._medvlm.take_notes())
        yield tally.passed("encode", part.stop)
        with tally.stage("detect"):
            detected = self._detector.detect(frames, asked.query.phrases, video_key=key)
            tally.warn(*self._detector.take_notes())
        yield tally.passed("detect", part.stop)
        with tally.stage("rank"):
            ranked = [
                self._rank(tally, frame, encoding, detections)
                for frame, encoding, detections in zip(frames, encodings, detected, strict=True)
            ]
        yield tally.passed("rank", part.stop)
        work = [
            TimeWork(
                requested_s=time_s,
                frame_index=frame.index,
                frame_s=frame.time_s,
                pool=pool,
                refinement=refinement,
                ranking=ranking,
                direct=UNWRITTEN,
                calibration=self._calibration,
            )
            for time_s, frame, (pool, refinement, ranking) in zip(
                times_s, frames, ranked, strict=True
            )
        ]
        return work, encodings[0].vision.resized_wh

    def _rank(
        self, tally: Tally, frame: Frame, encoding: Encoding, detections: Detections
    ) -> tuple[CandidatePool, Refinement, Ranking]:
        """Pool, RefineNet and filter for one frame."""
        pool = build_pool(
            detections,
            frame.size_wh,
            raw_limit=self._profile.detector.max_raw,
            pool_limit=self._profile.pool_limit,
        )
        if pool.sources[0] == "anchor":
            tally.warn(
                f"The detector found nothing on frame {frame.index}: "
                f"{len(pool)} fixed anchors stand in for its boxes."
            )
        if not self._nets:
            tally.warn(
                f"No RefineNet is trained for {self._facts.medvlm}: candidates keep their boxes "
                "and are ranked by their native score."
            )
            refinement = unrefined(pool)
        else:
            size_wh, block = frame.size_wh, self._nets[0].config.inter_block
            features = region_features(encoding, pool, size_wh=size_wh, inter_block=block)
            refinement = refine(self._nets, features, pool, size_wh=size_wh)
            if self._profile.refinenet.reencode:
                refinement = reencoded(
                    self._nets, encoding, pool, refinement, size_wh=size_wh, inter_block=block
                )
        return pool, refinement, filter_and_choose(pool, refinement)

    def _answers(
        self,
        tally: Tally,
        asked: Asked,
        group: range,
        frames: Sequence[Frame],
        resized_wh: tuple[int, int],
    ) -> tuple[MedVLMAnswer, ...]:
        """The direct baseline for a whole group."""
        times_s = asked.times_s[group.start : group.stop]
        written = self._medvlm.answer(frames, times_s, asked.text, asked.video.sha256)
        tally.warn(*written.notes)
        if written.cut:
            tally.warn(
                "The MedVLM's direct answer reached its length limit: "
                "what it had not written by then has no box."
            )
        boxes, remarks = direct_answers(
            written.text,
            times_s,
            space=self._profile.medvlm.coordinates,
            resized_wh=resized_wh,
            frame_wh=frames[0].size_wh,
        )
        tally.warn(*remarks)
        return tuple(MedVLMAnswer(box=box, text=written.text) for box in boxes)

    def _maps(
        self, frames: Sequence[Frame], work: Sequence[TimeWork], first: int, asked: Asked
    ) -> dict[int, ResponseMaps]:
        """Maps of each time's chosen box, numbered from `first`."""
        seen = self._medvlm.see(frames, asked.video.sha256)
        return {
            first + k: response_maps(vision, one.chosen_box, size_wh=frame.size_wh)
            for k, (frame, vision, one) in enumerate(zip(frames, seen, work, strict=True))
        }


def portions(whole: range, size: int) -> Iterator[range]:
    """A range cut into ranges of `size`, the last one what is left."""
    starts = range(whole.start, whole.stop, size)
    return (range(start, min(start + size, whole.stop)) for start in starts)


def blank_warnings(frames: Sequence[Frame]) -> list[str]:
    """A sentence for each frame of almost one colour."""
    return [
        f"Frame {frame.index} is blank (almost one colour): its boxes mean nothing."
        for frame in frames
        if cv2.meanStdDev(frame.image)[1].max() < _BLANK_SPREAD
    ]


def requested_times(
    asked: Question, times: Sequence[float] | None, current_s: float, duration_s: float
) -> tuple[float, ...]:
    """The times to answer: those given, else those in the question, else the current one.

    Raises:
        QuestionError: a time is not in the video.
    """
    if times is not None:
        return check_times(times, duration_s=duration_s)
    return asked.requested_s or check_times([current_s], duration_s=duration_s)
