"""The whole path: a video and a question become boxes, scores and maps.

question, times ── frames ── MedVLM features ┐
          └─ phrases ── detector ── pool ────┴─ RefineNet ── filter, choice ── answer
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch

from refinerank_core.assembly import TimeWork, smoothed, time_grounding, video_facts
from refinerank_core.candidates import build_pool
from refinerank_core.decode import filter_and_choose
from refinerank_core.direct import direct_answers
from refinerank_core.grounding import (
    Box,
    Grounding,
    MedVLMAnswer,
    ProfileFacts,
    QueryFacts,
    QuestionFacts,
)
from refinerank_core.lineup import Lineup, load_lineup, random_lineup
from refinerank_core.models.protocols import Detector, Encoding, MedVLM
from refinerank_core.models.untrained import write_untrained
from refinerank_core.profiles import Profile, load_profile
from refinerank_core.question import parse_question
from refinerank_core.refinenet import RefineNet, refine, region_features, unrefined
from refinerank_core.responses import ResponseMaps, response_maps
from refinerank_core.structures import (
    CandidatePool,
    Detections,
    Frame,
    Question,
    Ranking,
    Refinement,
)
from refinerank_core.times import check_times
from refinerank_core.video import Video, open_video

STAGES = ("query", "frames", "encode", "detect", "rank", "answer", "maps")
Progress = Callable[[str, int, int], None]
"""Called with a stage of STAGES, how many requested times are done in it, and of how many."""

_BLANK_SPREAD = 2.0


@dataclass(frozen=True, eq=False)
class Grounded:
    """A grounding and the response maps that travel beside it.

    Attributes:
        grounding: plain data.
        maps: position of the requested time -> its maps (target: the chosen box).
    """

    grounding: Grounding
    maps: dict[int, ResponseMaps]


@dataclass
class _Run:
    """What one call of `run` gathers on its way."""

    progress: Progress
    total: int
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str, done: int) -> Iterator[None]:
        """Time a stage; report that `done` requested times have passed it."""
        started = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
        self.progress(name, done, self.total)

    def warn(self, sentence: str) -> None:
        """Keep a warning once."""
        if sentence and sentence not in self.warnings:
            self.warnings.append(sentence)

    def warn_all(self, sentences: Iterable[str]) -> None:
        """Keep each of them once."""
        for sentence in sentences:
            self.warn(sentence)


class RefineRank:
    """Frozen MedVLM and detector, RefineNet on top. `load` builds one from a profile."""

    def __init__(
        self,
        profile: Profile,
        medvlm: MedVLM,
        detector: Detector,
        net: RefineNet | None,
        *,
        refinenet_name: str,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.profile = profile
        self.medvlm = medvlm
        self.detector = detector
        self.net = None if net is None else net.to(device)
        self.device = device
        self.facts = ProfileFacts(
            name=profile.name,
            medvlm=medvlm.model_id,
            detector=detector.model_id,
            refinenet=refinenet_name,
            phantom=profile.phantom,
            untrained=profile.untrained,
            device=device.type,
            dtype=str(dtype).removeprefix("torch."),
            attention=medvlm.attention,
            inter_block=profile.refinenet.inter_block,
            blocks=profile.medvlm.blocks,
        )

    @classmethod
    def load(
        cls, profile: Profile | str, *, device: str = "auto", dtype: str = "auto"
    ) -> "RefineRank":
        """Load the three models of a profile.

        Args:
            profile: a profile, or the name or path of one.
            device: "auto", "cpu" or "cuda".
            dtype: "auto" (bfloat16 on CUDA, float32 on the CPU) or a name.

        Raises:
            ProfileError: the profile is unknown or wrong.
            WeightsError: a checkpoint is absent, damaged, or does not fit the others.
            ModelError: the device does not exist.
        """
        chosen = load_profile(profile) if isinstance(profile, str) else profile
        if chosen.recipe is None:
            return cls._of(chosen, load_lineup(chosen, device=device, dtype=dtype))
        if chosen.recipe.name != "untrained":
            recipe = chosen.recipe
            lineup = random_lineup(chosen, recipe.name, recipe.seed, device=device, dtype=dtype)
            return cls._of(chosen, lineup)
        with tempfile.TemporaryDirectory(prefix="refinerank-") as folder:
            made = load_profile(str(write_untrained(Path(folder), seed=chosen.recipe.seed)))
            named = made.model_copy(update={"name": chosen.name, "label": chosen.label})
            return cls._of(named, load_lineup(named, device=device, dtype=dtype))

    @classmethod
    def _of(cls, profile: Profile, lineup: Lineup) -> "RefineRank":
        return cls(
            profile,
            lineup.medvlm,
            lineup.detector,
            lineup.net,
            refinenet_name=lineup.refinenet_name,
            device=lineup.device,
            dtype=lineup.dtype,
        )

    def ground(
        self,
        video: Video | Path | str,
        question: str,
        times: Sequence[float] | None = None,
        *,
        current_s: float = 0.0,
        smooth: bool = False,
        progress: Progress | None = None,
    ) -> Grounding:
        """Answer a question with one box per requested time. See `run`, which also gives maps."""
        return self.run(
            video,
            question,
            times,
            current_s=current_s,
            smooth=smooth,
            with_maps=False,
            progress=progress,
        ).grounding

    def run(
        self,
        video: Video | Path | str,
        question: str,
        times: Sequence[float] | None = None,
        *,
        current_s: float = 0.0,
        smooth: bool = False,
        with_maps: bool = True,
        progress: Progress | None = None,
    ) -> Grounded:
        """Answer a question with one box per requested time, and say why.

        Args:
            video: an open video, or the path of a file or frame folder.
            question: the user's words.
            times: requested times in seconds; None reads them out of the question.
            current_s: the time the user is looking at, requested when neither names one.
            smooth: choose over time so that the box does not jump ("temporal shape smoothing").
            with_maps: compute the response maps of each chosen box.
            progress: called after each stage of each group of times; may raise to cancel.

        Raises:
            VideoError, QuestionError, ModelError: the input cannot be used, or a model failed.
        """
        if not isinstance(video, Video):
            with open_video(video) as opened:
                return self.run(
                    opened,
                    question,
                    times,
                    current_s=current_s,
                    smooth=smooth,
                    with_maps=with_maps,
                    progress=progress,
                )
        asked = parse_question(question, duration_s=video.duration_s)
        requested = _requested_times(asked, times, current_s, video.duration_s)
        places = [video.nearest(time_s)[0] for time_s in requested]
        run = _Run(progress=progress or (lambda *_: None), total=len(requested))
        for sentence in video.warnings:
            run.warn(sentence)
        with run.stage("query", len(requested)):
            query = self.medvlm.query(asked)
        work: list[TimeWork] = []
        maps: dict[int, ResponseMaps] = {}
        size = self.profile.medvlm.answer_frames
        for start in range(0, len(requested), size):
            part = slice(start, start + size)
            done = min(start + size, len(requested))
            with run.stage("frames", done):
                frames = [video.read_frame(index) for index in places[part]]
            group = self._group(
                run, done, frames, requested[part], asked, query.phrases, video.sha256
            )
            if with_maps:
                with run.stage("maps", done):
                    maps |= self._maps(frames, group, start, video.sha256)
            work += group
        if smooth:
            work, changed = smoothed(work)
            if with_maps:
                for k in changed:
                    frame = video.read_frame(work[k].frame_index)
                    maps |= self._maps([frame], [work[k]], k, video.sha256)
        grounding = Grounding(
            video=video_facts(video),
            question=QuestionFacts(text=asked.text, times_s=tuple(requested), target=asked.target),
            profile=self.facts,
            query=QueryFacts.model_validate(vars(query)),
            times=tuple(time_grounding(one) for one in work),
            seconds={name: round(spent, 6) for name, spent in run.seconds.items()},
            warnings=tuple(run.warnings),
        )
        return Grounded(grounding=grounding, maps=maps)

    def frames_in_cache(self, video: Video, indices: Sequence[int]) -> int:
        """How many of these frames the MedVLM has seen and still remembers."""
        return self.medvlm.remembered(video.sha256, indices)

    def maps_at(self, video: Video, frame_index: int, target: Box) -> ResponseMaps:
        """The response maps of one frame for any target box (pixels of the frame)."""
        frame = video.read_frame(frame_index)
        vision = self.medvlm.see([frame], video.sha256)[0]
        return response_maps(vision, target, size_wh=frame.size_wh)

    def _group(
        self,
        run: _Run,
        done: int,
        frames: Sequence[Frame],
        requested: Sequence[float],
        asked: Question,
        phrases: Sequence[str],
        video_key: str,
    ) -> list[TimeWork]:
        """All steps for the frames that are held in memory together."""
        for frame in frames:
            if float(frame.image.std()) < _BLANK_SPREAD:
                run.warn(
                    f"Frame {frame.index} is blank (almost one colour): its boxes mean nothing."
                )
        with run.stage("encode", done):
            encodings = self.medvlm.encode(frames, requested, asked.text, video_key)
            run.warn_all(self.medvlm.take_notes())
        with run.stage("detect", done):
            found = self.detector.detect(frames, phrases, video_key=video_key)
            run.warn_all(self.detector.take_notes())
        with run.stage("rank", done):
            ranked = [
                self._rank(run, frame, encoding, detections)
                for frame, encoding, detections in zip(frames, encodings, found, strict=True)
            ]
        with run.stage("answer", done):
            written = self.medvlm.answer(frames, requested, asked.text, video_key)
            run.warn_all(written.notes)
            if written.cut:
                run.warn(
                    "The MedVLM's direct answer reached its length limit: "
                    "what it had not written by then has no box."
                )
            boxes, remarks = direct_answers(
                written.text,
                requested,
                space=self.profile.medvlm.coordinates,
                resized_wh=encodings[0].vision.resized_wh,
                frame_wh=frames[0].size_wh,
            )
            run.warn_all(remarks)
        return [
            TimeWork(
                requested_s=time_s,
                frame_index=frame.index,
                frame_s=frame.time_s,
                pool=pool,
                refinement=refinement,
                ranking=ranking,
                direct=MedVLMAnswer(box=box, text=written.text),
            )
            for time_s, frame, (pool, refinement, ranking), box in zip(
                requested, frames, ranked, boxes, strict=True
            )
        ]

    def _rank(
        self, run: _Run, frame: Frame, encoding: Encoding, detections: Detections
    ) -> tuple[CandidatePool, Refinement, Ranking]:
        """Pool, RefineNet and filter for one frame."""
        pool = build_pool(
            detections,
            frame.size_wh,
            raw_limit=self.profile.detector.max_raw,
            pool_limit=self.profile.pool_limit,
        )
        if pool.sources[0] == "anchor":
            run.warn(
                f"The detector found nothing on frame {frame.index}: "
                f"{len(pool)} fixed anchors stand in for its boxes."
            )
        if self.net is None:
            run.warn(
                f"No RefineNet is trained for {self.facts.medvlm}: candidates keep their boxes and "
                "are ranked by their native score."
            )
            refinement = unrefined(pool)
        else:
            features = region_features(
                encoding, pool, size_wh=frame.size_wh, inter_block=self.net.config.inter_block
            )
            refinement = refine(self.net, features, pool, size_wh=frame.size_wh)
        return pool, refinement, filter_and_choose(pool, refinement)

    def _maps(
        self, frames: Sequence[Frame], work: Sequence[TimeWork], first: int, video_key: str
    ) -> dict[int, ResponseMaps]:
        """Maps of each time's chosen box, numbered from `first`."""
        seen = self.medvlm.see(frames, video_key)
        return {
            first + k: response_maps(vision, one.chosen_box, size_wh=frame.size_wh)
            for k, (frame, vision, one) in enumerate(zip(frames, seen, work, strict=True))
        }


def _requested_times(
    asked: Question, times: Sequence[float] | None, current_s: float, duration_s: float
) -> tuple[float, ...]:
    """The times to answer: those given, else those in the question, else the current one."""
    if times is not None:
        return check_times(times, duration_s=duration_s)
    return asked.requested_s or check_times([current_s], duration_s=duration_s)
