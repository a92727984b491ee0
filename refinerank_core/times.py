"""Times written by people: clock times, spans with a step, lists; read exactly or refused.

Arithmetic is decimal, so "every 0.1 seconds" lands on 0.3 and not beside it.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from refinerank_core.errors import QuestionError

MAX_TIMES = 256
MAX_SECONDS = 10_000_000  # far past any recording; keeps every time a finite float

_NUMBER = r"[-+\u2212]?(?:\d+(?:\.\d+)?|\.\d+)"
_CLOCK = r"\d{1,4}:\d{1,2}(?::\d{1,2})?(?:\.\d+)?(?!\d|:\d)"
_SECOND = r"s(?:ec(?:ond)?s?)?\b\.?"
_MINUTE = r"min(?:ute)?s?\b\.?"
_UNIT = rf"(?:{_SECOND}|{_MINUTE})"
_START = r"(?<![\d.:,\w])"  # a time never starts inside another number or word
_MINUTES_SECONDS = rf"{_NUMBER}\s*{_MINUTE}\s+(?:and\s+)?{_NUMBER}\s*{_SECOND}"
_TIME_WITH_UNIT = (
    rf"(?:{_START}(?:{_CLOCK}(?:\s*{_UNIT})?|{_MINUTES_SECONDS}|{_NUMBER}\s*-?{_UNIT}))"
)
_TIME = rf"(?:{_TIME_WITH_UNIT}|{_START}{_NUMBER}(?!\d|:\d))"

_STEP = rf"\b(?:every|each)\s+(?:(?P<step>{_NUMBER})\s*-?)?(?P<unit>{_UNIT})"
_TO = r"\s*(?:to|until|till|through|-|\u2013|\u2014)\s*"
_FROM = rf"\bfrom\s+(?P<first>{_TIME}){_TO}(?P<last>{_TIME})"
_BETWEEN = rf"\bbetween\s+(?P<first>{_TIME})\s+and\s+(?P<last>{_TIME})"
_BARE = rf"(?P<first>{_TIME}){_TO}(?P<last>{_TIME_WITH_UNIT})"
_NEXT = r"[\s,;:]+"
_LATER = r".*?"

# The order decides which of several readings of one question holds. The first four are the
# wordings of MedVidBench; the others are what people type.
_SPANS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        _STEP + _NEXT + _FROM,
        _FROM + _LATER + _STEP,
        _STEP + _NEXT + _BETWEEN,
        _BETWEEN + _LATER + _STEP,
        _STEP + _LATER + _FROM,
        _STEP + _LATER + _BETWEEN,
        _BARE + _LATER + _STEP,
        _STEP + _LATER + _BARE,
    )
)
_STEPLESS_SPAN = re.compile(
    f"{_FROM}|{_BETWEEN}".replace("?P<first>", "").replace("?P<last>", ""), re.I
)
_SEPARATOR = r"(?:\s*[,;&]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+)(?:at\s+)?"
_LISTED = re.compile(
    rf"(?:\bat\s+(?:the\s+|times?\s+|t\s*=\s*)*((?:{_TIME}{_SEPARATOR})*{_TIME_WITH_UNIT}))"
    rf"|({_TIME_WITH_UNIT})\s*:(?!\d)|({_START}{_CLOCK})",
    re.IGNORECASE,
)
_EACH = re.compile(_TIME, re.IGNORECASE)
_ONE = re.compile(rf"\s*({_TIME})\s*", re.IGNORECASE)
_IN_MINUTES = re.compile(rf"{_NUMBER}\s*-?{_MINUTE}", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(rf"(?<![\d,.])\d+,\d+(?![\d,.])\s*-?{_UNIT}", re.IGNORECASE)


def requested_times(text: str, *, duration_s: float | None = None) -> tuple[float, ...]:
    """Read the times that a question asks about.

    A span with a step gives A, A + N, ... up to B, and never a B that is off this grid. Without
    one, the times named on their own count ("12.5 seconds:", "at 12.5 seconds", "1:05").

    Args:
        text: the question.
        duration_s: length of the video; None: not known, no time is too late.

    Returns:
        Ascending distinct seconds; empty when the text names no time.

    Raises:
        QuestionError: a clock time that does not exist, a decimal comma, a reversed span, a step
            that does not advance, more than MAX_TIMES times, or a time outside the video.

    Source: the timing phrases of MedVidBench questions, matched in a fixed order.
    """
    comma = _DECIMAL_COMMA.search(text)
    if comma:
        raise QuestionError(
            f"'{_short(comma[0])}' could be one time or two. "
            "Write 1.5 for a fraction, or '1, 5' for a list."
        )
    for pattern in _SPANS:
        span = pattern.search(text)
        if span:
            return check_times(_grid(span), duration_s=duration_s)
    named = _LISTED.finditer(_STEPLESS_SPAN.sub(" ", text))
    return check_times((time for match in named for time in _list(match[0])), duration_s=duration_s)


def parse_times(text: str, *, duration_s: float | None = None) -> tuple[float, ...]:
    """Read times given on their own, such as "12.5", "1:05" or "12.5, 16.5, 1:02:03.5".

    Args:
        text: one time, or several between commas, semicolons or spaces.
        duration_s: length of the video; None: not known.

    Returns:
        Ascending distinct seconds, at least one.

    Raises:
        QuestionError: a part is not a time, or `check_times` refuses it.
    """
    parts = [part for part in re.split(r"[,;\s]+", text) if part]
    if not parts:
        raise QuestionError("No time is given. Write seconds (12.5) or a clock time (1:05).")
    return check_times((parse_time(part) for part in parts), duration_s=duration_s)


def parse_time(text: str) -> float:
    """Read one time: "12.5", "12.5 s", "1:05", "1:02:03.5", "2 min". Raises QuestionError."""
    match = _ONE.fullmatch(text)
    if not match:
        raise QuestionError(
            f"'{_short(text)}' is not a time. Write seconds (12.5) or a clock time (1:05)."
        )
    return float(_seconds(match[1]))


def check_times(times_s: Iterable[float], *, duration_s: float | None = None) -> tuple[float, ...]:
    """Sort times, drop doubles, and refuse too many or any outside the video.

    Args:
        times_s: seconds from the first frame, any order.
        duration_s: length of the video; None: not known.

    Returns:
        Ascending distinct seconds.

    Raises:
        QuestionError: more than MAX_TIMES, a time before 0, or one past the end.
    """
    times = tuple(sorted({float(time) for time in times_s}))
    if len(times) > MAX_TIMES:
        raise _too_many(len(times))
    if times and times[0] < 0:
        raise QuestionError(f"{times[0]:g} s lies before the video. Ask for times from 0 on.")
    last = times[-1] if times else 0.0
    if last > MAX_SECONDS or (duration_s is not None and last > duration_s):
        end = MAX_SECONDS if duration_s is None else duration_s
        raise QuestionError(
            f"{last:g} s is past the end of the video ({end:.3f} s). Ask for an earlier time."
        )
    return times


def _grid(span: re.Match[str]) -> Iterator[float]:
    """A, A + N, ... <= B of a matched span."""
    in_minutes = _IN_MINUTES.match(span["last"]) and re.fullmatch(_NUMBER, span["first"])
    first = _seconds(span["first"]) * (60 if in_minutes else 1)
    last = _seconds(span["last"])
    step = _seconds(f"{span['step'] or 1} {span['unit']}")
    if step <= 0:
        raise QuestionError(f"A step of {step} s does not advance. Ask for every 1 second or more.")
    if last < first:
        raise QuestionError(
            f"The span from {first} s to {last} s runs backwards. Put the earlier time first."
        )
    count = int((last - first) / step) + 1
    if count > MAX_TIMES:
        raise _too_many(count)
    return (float(first + index * step) for index in range(count))


def _list(text: str) -> Iterator[float]:
    """Every time named in a list whose last one carries the unit."""
    times = _EACH.findall(text)
    in_minutes = bool(_IN_MINUTES.fullmatch(times[-1]))
    for time in times:
        bare = re.fullmatch(_NUMBER, time) is not None
        yield float(_seconds(time) * (60 if bare and in_minutes else 1))


def _seconds(time: str) -> Decimal:
    """The exact seconds of a text that _TIME matched."""
    if ":" in time:
        return _clock_seconds(re.match(r"[\d:.]+", time)[0].rstrip("."))  # type: ignore[index]
    numbers = [Decimal(found.replace("\u2212", "-")) for found in re.findall(_NUMBER, time)]
    if _IN_MINUTES.match(time):
        numbers[0] *= 60
    total = sum(numbers, Decimal(0))
    if abs(total) > MAX_SECONDS:
        raise QuestionError(f"'{_short(time)}' is longer than any video. Ask for an earlier time.")
    return total


def _clock_seconds(clock: str) -> Decimal:
    """Seconds of h:mm:ss or mm:ss, with a fraction or without."""
    *leading, seconds = (Decimal(part) for part in clock.split(":"))
    if seconds >= 60 or (len(leading) == 2 and leading[1] >= 60):
        raise QuestionError(
            f"'{clock}' is not a clock time: seconds and minutes end at 59. Write 1:30 or 90 s."
        )
    for part in reversed(leading):
        seconds += part * (60 if part is leading[-1] else 3600)
    return seconds


def _too_many(count: int) -> QuestionError:
    wanted = str(count) if count < 10**6 else "over a million"
    return QuestionError(
        f"The question asks for {wanted} times; at most {MAX_TIMES} can be answered at once. "
        "Shorten the span or use a longer step."
    )


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "..."
