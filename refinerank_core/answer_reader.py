"""Read boxes out of whatever a model wrote, in one pass over its tokens.

A box is four numbers in one pair of brackets. At most the brackets are mended, never the numbers:
a group of three, or one with a sign or a digit out of place, is counted and left alone. Each token
is looked at once, so the time taken grows with the length of the text and with nothing else.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite

from refinerank_core.boxes import Corners
from refinerank_core.errors import QuestionError
from refinerank_core.times import parse_time

MAX_CHARACTERS = 100_000  # no model answers at such length; what follows is not read

_TOKEN = re.compile(
    r"""<\|object_ref_start\|>(?P<reference>[^<]{1,200})<\|object_ref_end\|>
      | (?P<marker><\|[a-z_]{1,40}\|>)
      | ["'](?P<key>[\w\ .:-]{1,40})["']\s{0,8}:
      | (?P<clock>(?<![\d.:])\d{1,4}:\d\d(?::\d\d)?(?:\.\d+)?(?!\d|:\d))
      | (?P<number>(?:(?<![\w.])[-+\u2212])?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,3})?)
      | (?P<word>[^\W\d]\w*)
      | (?P<open>[\[({])
      | (?P<close>[\])}])
      | (?P<colon>:)
      | (?P<separator>[,;"'])
      | (?P<dash>[-\u2013\u2014])
      | (?P<other>\S)""",
    re.IGNORECASE | re.VERBOSE,
)
_DECIMAL_COMMA = re.compile(r"\d{1,7},\d{1,3}")
_THINK_TAG = re.compile(r"(</?think>)", re.IGNORECASE)
_TIME_VALUE = re.compile(r"\s{0,8}[\"']?\s?([\d.:]{1,20})\s?(?:s|sec|seconds?)?\b", re.IGNORECASE)
# A label ends at the quote before a comma or bracket: quotes inside it are often not escaped.
_LABEL_VALUE = re.compile(r"\s{0,8}([\"'])(.{0,200}?)\1(?=\s{0,8}[,}\]])")

_UNITS = frozenset({"s", "sec", "secs", "second", "seconds"})
_TIME_WORDS = frozenset({"at", "t", "time", "timestamp"})
_TIME_KEYS = frozenset({"time", "time_s", "timestamp", "t", "second", "seconds", "frame_time"})
_LABEL_KEYS = frozenset({"label", "name", "class", "category", "object"})
_NOTHING = frozenset({"no", "none", "not", "nothing", "null", "absent"})
_OPENERS = {"]": "[", ")": "(", "}": "{"}
_MAY_PRECEDE_A_LOST_BRACKET = frozenset({"start", "colon", "time", "close"})


@dataclass
class ReadBox:
    """One box as it is read; time_s None and label "" where the answer gives none."""

    corners: Corners
    time_s: float | None
    label: str


@dataclass
class _Object:
    """An open JSON object: what its keys said so far, and the boxes that it holds."""

    time_s: float | None = None
    label: str = ""
    boxes: list[ReadBox] = field(default_factory=list)


class AnswerReader:
    """Reads one text when made; the attributes then hold what was found.

    Attributes:
        boxes: in reading order.
        repaired: mends made: a bracket put right, a decimal comma.
        unread: groups in brackets, or bare fours, that are no box, and impossible clock times.
        truncated: the text stops in the middle of a box, an object or a thought.
    """

    def __init__(self, text: str) -> None:
        self.boxes: list[ReadBox] = []
        self.repaired = 0
        self.unread = 0
        self._time: float | None = None  # the time in force for boxes that follow
        self._time_spent = False  # it has a box; the next word or object ends its reach
        self._time_level = 0  # how many brackets were open when it was named
        self._reference = ""
        self._objects: list[_Object] = []
        self._depth = 0  # open square brackets
        self._run: list[re.Match[str]] = []  # numbers with nothing but separators between them
        self._before_run = "start"
        self._opener = ""
        self._half: list[re.Match[str]] = []  # (x0, y0) that waits for (x1, y1)
        self._trail = ["start", "start"]  # kinds of the last two tokens that mean something
        spoken, self.truncated = _spoken(text)
        self._read(spoken)

    def _read(self, text: str) -> None:
        position = 0
        while token := _TOKEN.search(text, position):
            position = token.end()
            kind = token.lastgroup
            if kind == "number":
                self._on_number(token)
            elif kind == "key":
                position = self._on_key(token)
            elif kind == "word":
                self._on_word(token[0].lower())
            elif kind == "open":
                self._on_open(token[0])
            elif kind == "close":
                self._on_close(token[0])
            elif kind == "clock":
                self._end_run("clock")
                self._set_time(self._clock(token[0]))
            elif kind == "reference":
                self._reference = token["reference"].strip()
            elif kind in ("colon", "dash", "other"):
                self._end_run(kind)
                self._note(kind)
        self._finish()

    def _note(self, kind: str) -> None:
        self._trail = [self._trail[1], kind]

    def _on_number(self, token: re.Match[str]) -> None:
        if not self._run:
            self._before_run = self._trail[1]
        self._run.append(token)

    def _on_word(self, word: str) -> None:
        if word in _UNITS and self._run:
            self._end_time()
            return
        if word == "and":
            return
        self._end_run("word")
        outside = not self._depth and not self._objects
        if word in _NOTHING or (outside and self._time_spent):
            self._time = None
        self._note("to" if word == "to" else "time word" if word in _TIME_WORDS else "word")

    def _on_open(self, bracket: str) -> None:
        self._end_run("open")
        if bracket == "{":
            if self._time_spent and self._level() <= self._time_level:
                self._time = None
            outer = self._objects[-1] if self._objects else _Object()
            self._objects.append(_Object(outer.time_s, outer.label))
        self._depth += bracket == "["
        self._opener = bracket
        self._note("open")

    def _on_close(self, bracket: str) -> None:
        opener = self._run_opener() or _OPENERS[bracket]  # "[1, 2, 3, 4)" closes its "["
        self._end_run("close", bracket)
        self._shut(opener)
        self._note("close")

    def _shut(self, opener: str) -> None:
        if opener == "[":
            self._depth = max(0, self._depth - 1)
        elif opener == "{" and self._objects:
            self._close_object()

    def _level(self) -> int:
        return self._depth + len(self._objects)

    def _run_opener(self) -> str:
        """The bracket right before the numbers read so far, or ""."""
        return self._opener if self._run and self._before_run == "open" else ""

    def _on_key(self, token: re.Match[str]) -> int:
        """Take in a JSON key; return where reading goes on."""
        self._end_run("key")
        key, text, end = token["key"].strip().lower(), token.string, token.end()
        inside = self._objects[-1] if self._objects else _Object()
        if key in _TIME_KEYS and (value := _TIME_VALUE.match(text, end)):
            inside.time_s = self._clock(value[1])
            if not self._objects:
                self._set_time(inside.time_s)
            end = value.end()
        elif key in _LABEL_KEYS and (value := _LABEL_VALUE.match(text, end)):
            inside.label = value[2]
            end = value.end()
        elif key[:1].isdigit() and (value := _TIME_VALUE.fullmatch(key)):
            self._set_time(self._clock(value[1]))
        self._note("colon")
        return end

    def _clock(self, text: str) -> float | None:
        """Seconds, or None and one more unread."""
        try:
            return parse_time(text)
        except QuestionError:
            self.unread += 1
            return None

    def _set_time(self, time_s: float | None) -> None:
        """Put a time in force; the end of a range ("1.0-29.0 seconds") is not one."""
        is_range_end = self._trail[1] in ("dash", "to") and self._trail[0] in ("number", "time")
        usable = time_s is not None and isfinite(time_s) and not is_range_end
        self._time = time_s if usable else None
        self._time_spent = False
        self._time_level = self._level()
        self._note("time")

    def _end_time(self) -> None:
        """The run's last number turned out to be a time, for a unit follows."""
        last = self._run.pop()
        written = last[0]
        if len(self._run) == 1 and self._before_run != "open":
            comma = f"{self._run[0][0]},{written}"
            if _DECIMAL_COMMA.fullmatch(comma) and last.string.endswith(comma, 0, last.end()):
                written = comma.replace(",", ".")
                self._run.clear()
                self.repaired += 1
        self._end_run("time")
        self._set_time(_value(written))

    def _end_run(self, ender: str, bracket: str = "") -> None:
        """Decide what the numbers read so far are."""
        opener = self._run_opener()
        run, self._run = self._run, []
        is_pair = len(run) == 2 and opener == "(" and bracket == ")"
        if is_pair and self._half:
            run, self._half = self._half + run, []
        elif is_pair:
            self._half = run
            return
        elif self._half and (run or ender != "open"):
            self._half = []
            self.unread += 1
        if not run:
            return
        if len(run) == 1 and self._before_run == "time word" and ender in ("colon", "open"):
            self._set_time(_value(run[0][0]))
        elif len(run) == 4 and ender not in ("other", "dash") and self._may_be_box(opener, ender):
            self._add_box(run, mended=not opener or _OPENERS.get(bracket) != opener)
        elif opener == "[" and ender == "end" and len(run) < 4:
            self.truncated = True
        elif len(run) == 4 or opener:
            self.unread += 1
        else:
            self._note("number")
        if ender not in ("close", "end"):
            self._shut(opener)  # its closing bracket is lost

    def _may_be_box(self, opener: str, ender: str) -> bool:
        """Four numbers with a bracket before them, or where only that bracket can be missing."""
        if opener:
            return True
        closed = ender == "close"
        waited_for = self._time is not None and not self._time_spent
        alone = self._before_run == "start" and ender == "end"
        plausible = self._before_run in _MAY_PRECEDE_A_LOST_BRACKET
        return plausible and (closed or waited_for or alone)

    def _add_box(self, run: list[re.Match[str]], *, mended: bool) -> None:
        x0, y0, x1, y1 = (_value(number[0]) for number in run)
        apart = all(left.end() < right.start() for left, right in pairwise(run))
        if not (apart and all(map(isfinite, (x0, y0, x1, y1))) and x0 < x1 and y0 < y1):
            self.unread += 1
            return
        self.repaired += mended
        box = ReadBox((x0, y0, x1, y1), self._time, self._reference)
        self._reference = ""
        self._time_spent = True
        self.boxes.append(box)
        if self._objects:
            self._objects[-1].boxes.append(box)

    def _close_object(self) -> None:
        """Hand what the keys of an object said to its boxes; a time that it named ends with it."""
        closed = self._objects.pop()
        if self._level() < self._time_level:
            self._time = None
        for box in closed.boxes:
            box.time_s = box.time_s if closed.time_s is None else closed.time_s
            box.label = closed.label or box.label

    def _finish(self) -> None:
        waits = self._trail[1] == "colon" and self._time is not None and not self._run
        lost_bracket = self._run_opener() == "[" and len(self._run) == 4
        self._end_run("end")
        still_open = self._depth > lost_bracket or bool(self._objects)
        self.truncated |= still_open or (waits and not self._time_spent)
        while self._objects:
            self._close_object()


def _spoken(text: str) -> tuple[str, bool]:
    """What is said outside <think>, inside <answer> if there is one; and whether it was cut."""
    said: list[str] = []
    thinking = False
    for part in _THINK_TAG.split(text[:MAX_CHARACTERS]):
        if part.lower() == "</think>":
            said, thinking = said if thinking else [], False  # the opening tag may be in the prompt
        elif part.lower() == "<think>":
            thinking = True
        elif not thinking:
            said.append(part)
    answer = " ".join(said).rpartition("<answer>")[2].partition("</answer>")[0]
    return answer, thinking or len(text) > MAX_CHARACTERS


def _value(number: str) -> float:
    return float(number.replace("\u2212", "-"))
