"""An answer while it grows: times join it as they are ranked, then the MedVLM's own words."""

from __future__ import annotations

from dataclasses import replace

from demo.sessions import Answer, Clip, new_answer_token
from refinerank_core.grounding import Grounding, TimeGrounding
from refinerank_core.progress import Begun, Grounded, Ranked, Written


class Growth:
    """What is known of one running question.

    Attributes:
        answer: with the times that are ranked so far; None while there are none.
        total: requested times; 0 before the run has begun.
    """

    def __init__(self, clip: Clip, reused: int) -> None:
        """Nothing is known yet.

        Args:
            clip: that is asked about.
            reused: how many of the requested frames are in the feature cache.
        """
        self.answer: Answer | None = None
        self.total = 0
        self._clip = clip
        self._reused = reused
        self._begun: Grounding | None = None

    def take(self, news: Begun | Ranked | Written | Grounded) -> Answer | None:
        """The answer with what was told in it; None while there is none."""
        if isinstance(news, Begun):
            self._begun = news.grounding
            self.total = len(news.grounding.question.times_s)
        elif isinstance(news, Ranked):
            self._rank(news)
        elif isinstance(news, Written):
            self._write(news)
        else:
            self._finish(news)
        return self.answer

    def stop(self) -> Answer | None:
        """The answer as it stays when nothing more comes: it says itself what it lacks."""
        if self.answer is None or not self.answer.running:
            return self.answer
        times, unwritten = len(self.answer.grounding.times), len(self.answer.unwritten)
        lacks = [f"Stopped: {times} of {self.total} requested times are answered."]
        if unwritten:
            lacks.append(
                f"The MedVLM's own answer was not written for {unwritten} of them: "
                "it has no box there for that reason alone."
            )
        warnings = (*self.answer.grounding.warnings, *lacks)
        grounding = self.answer.grounding.model_copy(update={"warnings": warnings})
        self.answer = replace(self.answer, grounding=grounding, running=False)
        return self.answer

    def _rank(self, news: Ranked) -> None:
        old = self.answer
        times = (*(old.grounding.times if old else ()), *news.times)
        unwritten = (old.unwritten if old else frozenset()) | {
            news.first + k for k in range(len(news.times))
        }
        self.answer = Answer(
            token=old.token if old else new_answer_token(),
            clip=self._clip,
            grounding=self._grounding(times, news),
            maps={**(old.maps if old else {}), **news.maps},
            truth=self._truth(),
            reused=self._reused,
            running=True,
            unwritten=unwritten,
        )

    def _write(self, news: Written) -> None:
        old = self.answer
        if old is None:
            raise ValueError("an answer was written for times that were not ranked")
        times = list(old.grounding.times)
        for k, words in enumerate(news.answers, news.first):
            answers = times[k].answers.model_copy(update={"medvlm": words})
            times[k] = times[k].model_copy(update={"answers": answers})
        written = range(news.first, news.first + len(news.answers))
        grounding = self._grounding(tuple(times), news)
        self.answer = replace(
            old, grounding=grounding, unwritten=old.unwritten - frozenset(written)
        )

    def _finish(self, news: Grounded) -> None:
        """The whole. Where it chose otherwise than was told before, it is another answer."""
        old = self.answer
        same = old is not None and old.grounding.times == news.grounding.times
        self.total = len(news.grounding.times)
        self._begun = news.grounding
        self.answer = Answer(
            token=old.token if old and same else new_answer_token(),
            clip=self._clip,
            grounding=news.grounding,
            maps=news.maps,
            truth=self._truth(),
            reused=self._reused,
        )

    def _grounding(self, times: tuple[TimeGrounding, ...], news: Ranked | Written) -> Grounding:
        """What the JSON of the answer so far is: a whole grounding of fewer times."""
        if self._begun is None:
            raise ValueError("times were ranked before the run had begun")
        question = self._begun.question
        asked = question.model_copy(update={"times_s": question.times_s[: len(times)]})
        return self._begun.model_copy(
            update={
                "question": asked,
                "times": times,
                "seconds": dict(news.seconds),
                "warnings": news.warnings,
            }
        )

    def _truth(self) -> dict[int, tuple[float, float, float, float]]:
        sample = self._clip.sample
        if sample is None or self._begun is None:
            return {}
        return dict(sample.truth_for(self._begun.question.text))
