"""The whole path: a video and a question become boxes, scores and maps.

question, times ── frames ── MedVLM features ┐
          └─ phrases ── detector ── pool ────┴─ RefineNet ── filter, choice ── answer
"""

import tempfile
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import torch

from refinerank_core.errors import ModelError, ProfileError
from refinerank_core.grounding import Box, Grounding, ProfileFacts
from refinerank_core.lineup import Lineup, load_lineup, load_nets, random_lineup
from refinerank_core.models.protocols import Detector, MedVLM
from refinerank_core.models.untrained import write_untrained
from refinerank_core.profiles import Profile, load_profile
from refinerank_core.progress import Grounded, News, Passed
from refinerank_core.refinenet import RefineNet
from refinerank_core.responses import ResponseMaps, response_maps
from refinerank_core.steps import Steps
from refinerank_core.video import Video, open_video

Progress = Callable[[str, int, int], None]
"""Called with a stage of STAGES, how many requested times are done in it, and of how many."""


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
        others: Sequence[RefineNet] = (),
    ) -> None:
        self.profile = profile
        self.medvlm = medvlm
        self.detector = detector
        self.net = None if net is None else net.to(device)
        self.others = tuple(other.to(device) for other in others)  # of an ensemble
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
            others=lineup.others,
        )

    def with_variant(self, profile: Profile) -> "RefineRank":
        """The same loaded models with the RefineNet of a variant of this profile.

        Raises:
            ProfileError: the profile names other models, or uses them otherwise.
            WeightsError: its RefineNet is absent, damaged, or was trained on another MedVLM.
        """
        if _frozen_part(profile) != _frozen_part(self.profile):
            raise ProfileError(
                f"Profile {profile.name} is no variant of {self.profile.name}: its MedVLM or its "
                "detector differs. Start the app with it instead."
            )
        nets, name = load_nets(profile, self.medvlm)
        return RefineRank(
            profile,
            self.medvlm,
            self.detector,
            nets[0] if nets else None,
            refinenet_name=name,
            device=self.device,
            dtype=getattr(torch, self.facts.dtype),
            others=nets[1:],
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
        whole: News | None = None
        for news in self.steps(
            video, question, times, current_s=current_s, smooth=smooth, with_maps=with_maps
        ):
            if isinstance(news, Passed) and progress is not None:
                progress(news.stage, news.done, news.total)
            whole = news
        if not isinstance(whole, Grounded):
            raise ModelError("The run ended without an answer. Ask again.")
        return whole

    def steps(
        self,
        video: Video,
        question: str,
        times: Sequence[float] | None = None,
        *,
        current_s: float = 0.0,
        smooth: bool = False,
        with_maps: bool = True,
        batch: int | None = None,
    ) -> Generator[News, None, None]:
        """`run` step by step: what is known is told as soon as it is.

        Closing the iterator stops the work after the stage that runs.

        Args:
            video: open.
            question, times, current_s, smooth, with_maps: as in `run`.
            batch: how many requested times are ranked, and told, together; None: all those that
                the MedVLM answers together.

        Yields:
            One Begun; a Passed after each stage; a Ranked for each batch and a Written for all
            that the MedVLM answers together; at last the Grounded that `run` returns. With smooth
            it may hold other choices than Ranked told.

        Raises:
            VideoError, QuestionError, ModelError: as in `run`.
        """
        nets = () if self.net is None else (self.net, *self.others)
        return Steps(self.profile, self.medvlm, self.detector, nets, self.facts).run(
            video,
            question,
            times,
            current_s=current_s,
            smooth=smooth,
            with_maps=with_maps,
            batch=batch,
        )

    def frames_in_cache(self, video: Video, indices: Sequence[int]) -> int:
        """How many of these frames the MedVLM has seen and still remembers."""
        return self.medvlm.remembered(video.sha256, indices)

    def maps_at(self, video: Video, frame_index: int, target: Box) -> ResponseMaps:
        """The response maps of one frame for any target box (pixels of the frame)."""
        frame = video.read_frame(frame_index)
        vision = self.medvlm.see([frame], video.sha256)[0]
        return response_maps(vision, target, size_wh=frame.size_wh)


def _frozen_part(profile: Profile) -> tuple[object, ...]:
    """What a profile says of its frozen models, sources as they are found."""
    medvlm, detector = profile.medvlm, profile.detector
    return (
        medvlm.model_copy(update={"source": profile.locate(medvlm.source)}),
        detector.model_copy(
            update={
                "source": profile.locate(detector.source),
                "tokenizer": profile.locate(detector.tokenizer),
            }
        ),
        profile.pool_limit,
    )
