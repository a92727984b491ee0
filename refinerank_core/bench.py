"""Speed, measured the same way everywhere: medians over repeats, and ratios within one run."""

import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import av
import cv2
import numpy as np
import torch

from refinerank_core.bench_limits import limit_lines
from refinerank_core.candidates import build_pool
from refinerank_core.decode import filter_and_choose
from refinerank_core.frame_writer import write_video
from refinerank_core.models.detector import GroundingDino
from refinerank_core.models.medvlm import QwenMedVLM
from refinerank_core.pipeline import RefineRank
from refinerank_core.refinenet import RefineNet, RegionFeatures, refine
from refinerank_core.structures import CandidatePool, Detections
from refinerank_core.timing import Line, compare_ms, median_ms
from refinerank_core.video import Video, open_video

_QUESTIONS = (
    "Which instrument is dissecting the gallbladder?",
    "Where is the grasper that holds the tissue?",
)
_CANDIDATES = 128
_TIMES = 8
_TWO_HOURS_FRAMES = 2 * 3600 * 25


def run(
    system: RefineRank, video_path: Path | None, *, repeats: int, two_hours: bool
) -> list[Line]:
    """Measure everything on one video.

    Args:
        system: the models to measure.
        video_path: a video; None makes a moving test picture of 854x480, 25 frames/s, 12 s.
        repeats: measurements per line.
        two_hours: also open a made file of two hours.
    """
    with tempfile.TemporaryDirectory(prefix="refinerank-bench-") as folder:
        path = video_path or _made_clip(Path(folder) / "bench.mp4")
        lines = _video_lines(path, repeats)
        if two_hours:
            lines += _two_hour_lines(Path(folder) / "two-hours.mp4")
        with open_video(path) as video:
            lines += _model_lines(system, video, repeats)
        lines.append(Line("peak memory of the process", _peak_mb(), "MB", 1))
        if system.device.type == "cuda":
            peak = torch.cuda.max_memory_allocated(system.device) / (1 << 20)
            lines.append(Line("peak memory of the card", peak, "MB", 1))
    return lines


def _video_lines(path: Path, repeats: int) -> list[Line]:
    opened: list[Video] = []

    def reopen() -> None:
        for old in opened:
            old.close()
        opened[:] = [open_video(path)]

    lines = [Line("open and table", median_ms(reopen, repeats), "ms", repeats)]
    video = opened[0]
    middle = len(video) // 2

    def read_middle() -> object:
        return opened[0].read_frame(middle)

    cold = median_ms(read_middle, repeats, reopen)
    lines.append(Line("read_frame cold", cold, "ms", repeats))
    video = opened[0]
    warm = median_ms(read_middle, repeats)
    lines.append(Line("read_frame warm", warm, "ms", repeats))
    steps = _steps_within_a_group(video)
    video.read_frame(steps[0])
    for name, walk in (("forward", steps), ("back", steps[::-1])):
        each = _walk_ms(video, walk)
        lines.append(Line(f"step {name} within a group of pictures", each, "ms", len(walk)))
    seek = _opencv_seek_ms(path, steps)
    ratio = seek / max(lines[-2].value, lines[-1].value)
    lines.append(Line("OpenCV seek and read, same frames", seek, "ms", len(steps)))
    lines.append(
        Line("stepping against the OpenCV seek", ratio, "x", len(steps), ">= 5 x", ratio >= 5)
    )
    video.close()
    return lines


def _walk_ms(video: Video, walk: list[int]) -> float:
    places = iter(walk)

    def step() -> object:
        return video.read_frame(next(places))

    return median_ms(step, len(walk))


def _steps_within_a_group(video: Video) -> list[int]:
    """Up to 40 neighbouring frames of one group of pictures."""
    keys = [*video.key_frames, len(video)]
    start, end = max(pairwise(keys), key=lambda pair: pair[1] - pair[0])
    return list(range(start, min(end, start + 40)))


def _opencv_seek_ms(path: Path, frames: list[int]) -> float:
    capture = cv2.VideoCapture(str(path))
    spent = []
    for index in frames:
        started = time.perf_counter()
        capture.set(cv2.CAP_PROP_POS_FRAMES, index)
        capture.read()
        spent.append((time.perf_counter() - started) * 1000)
    capture.release()
    return statistics.median(spent)


def _two_hour_lines(path: Path) -> list[Line]:
    _write_two_hours(path)
    context = multiprocessing.get_context("spawn")  # a fresh process, so that its memory is its own
    with context.Pool(1) as pool:
        seconds, growth_mb = pool.apply(_open_and_measure, (str(path),))
    return [
        Line("open a two-hour file (180,000 frames)", seconds, "s", 1, "<= 5 s", seconds <= 5),
        Line("memory that opening it takes", growth_mb, "MB", 1, "<= 300 MB", growth_mb <= 300),
    ]


def _open_and_measure(path: str) -> tuple[float, float]:
    before = _held_mb()
    started = time.perf_counter()
    with open_video(path) as video:
        seconds = time.perf_counter() - started
        held = _held_mb()
        if len(video) != _TWO_HOURS_FRAMES:
            raise RuntimeError(f"{len(video)} frames in the made file, wanted {_TWO_HOURS_FRAMES}")
    return seconds, held - before


def _write_two_hours(path: Path) -> None:
    """Two hours of 25 frames/s: ten seconds encoded once, their packets written 720 times."""
    clip = path.with_name("ten-seconds.mp4")
    write_video(clip, _moving_pictures(250, (64, 48)), np.arange(250) / 25)
    with av.open(str(clip)) as source, av.open(str(path), "w") as target:
        stream = source.streams.video[0]
        copy = target.add_stream_from_template(stream)
        packets = [
            (bytes(p), p.pts, p.dts, p.duration, p.is_keyframe)
            for p in source.demux(stream)
            if p.pts is not None and p.dts is not None
        ]
        time_base = stream.time_base
        if time_base is None:
            raise RuntimeError("the made clip has no time base")
        ticks = sum(duration or 0 for _, _, _, duration, _ in packets)
        for turn in range(_TWO_HOURS_FRAMES // len(packets)):
            for data, pts, dts, duration, is_key in packets:
                packet = av.Packet(data)
                packet.stream = copy
                packet.time_base = time_base
                packet.pts, packet.dts = pts + turn * ticks, dts + turn * ticks
                packet.duration, packet.is_keyframe = duration, is_key
                target.mux(packet)


def _made_clip(path: Path) -> Path:
    write_video(path, _moving_pictures(300, (854, 480)), np.arange(300) / 25)
    return path


def _moving_pictures(count: int, size_wh: tuple[int, int]) -> Iterator[np.ndarray]:
    """A textured ground that drifts under a moving disc."""
    width, height = size_wh
    rng = np.random.default_rng(0)
    coarse = rng.integers(60, 200, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
    ground = cv2.resize(coarse, (width + 64, height + 64), interpolation=cv2.INTER_CUBIC)
    for k in range(count):
        shift = k % 64
        picture = ground[shift : shift + height, shift : shift + width].copy()
        centre = (width * k // count, height // 2)
        cv2.circle(picture, centre, height // 8, (230, 230, 235), -1, cv2.LINE_AA)
        yield picture


def _model_lines(system: RefineRank, video: Video, repeats: int) -> list[Line]:
    medvlm = system.medvlm
    if not isinstance(medvlm, QwenMedVLM):
        raise TypeError("the bench measures the Qwen2.5-VL adapter")
    frame = video.read_frame(len(video) // 2)
    ask, other = _QUESTIONS
    key = video.sha256

    def encode() -> object:
        return medvlm.encode([frame], [frame.time_s], ask, key)

    encode()  # first calls set up kernels and memory
    cold = median_ms(encode, repeats, medvlm.store.clear)
    warm = median_ms(encode, repeats)
    detect = median_ms(lambda: system.detector.detect([frame], ["hook"]), repeats)
    card = system.device.type == "cuda"
    lines = [
        Line("encode cold", cold, "ms", repeats),
        Line("encode, vision features cached", warm, "ms", repeats),
        Line("encode cached against cold", warm / cold, "x", repeats),
        Line(
            "detect",
            detect,
            "ms",
            repeats,
            "<= 60 ms" if card else "",
            detect <= 60 if card else None,
        ),
    ]
    lines += limit_lines(medvlm, frame, ask, encode_ms=cold, repeats=repeats)
    if system.net is not None:
        ranking = _ranking_ms(system.net, medvlm, frame.size_wh, repeats)
        name = "pool, RefineNet, decode for 128 candidates"
        lines.append(Line(name, ranking, "ms", repeats, "<= 20 ms", ranking <= 20))
    return lines + _ground_lines(system, medvlm, video, ask, other, repeats)


def _ranking_ms(
    net: RefineNet, medvlm: QwenMedVLM, size_wh: tuple[int, int], repeats: int
) -> float:
    found = random_detections(_CANDIDATES, size_wh)
    query_dim, final_dim, inter_dim = medvlm.widths
    device = net.standardizer_mean.device

    def rank() -> object:
        pool: CandidatePool = build_pool(found, size_wh, raw_limit=_CANDIDATES)
        features = RegionFeatures(
            q_last=torch.ones(query_dim, device=device),
            r_final=torch.ones(len(pool), final_dim, device=device),
            r_inter=torch.ones(len(pool), inter_dim, device=device),
            metadata=torch.from_numpy(pool.metadata.copy()).to(device),
        )
        return filter_and_choose(pool, refine(net, features, pool, size_wh=size_wh))

    rank()
    return median_ms(rank, repeats)


def random_detections(count: int, size_wh: tuple[int, int], *, seed: int = 0) -> Detections:
    """Seeded boxes inside a frame, to measure and to test with."""
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(0.02, 0.98, (count, 2, 2)), axis=1)
    corners[:, 1] = np.maximum(corners[:, 1], corners[:, 0] + 0.01)
    boxes = corners.reshape(count, 4) * np.array([*size_wh, *size_wh])
    return Detections(
        boxes=boxes.astype(np.float32),
        scores=np.sort(rng.uniform(0.05, 1.0, count))[::-1].astype(np.float32),
        phrases=("instrument",) * count,
    )


def _ground_lines(
    system: RefineRank, medvlm: QwenMedVLM, video: Video, ask: str, other: str, repeats: int
) -> list[Line]:
    times = [float(t) for t in np.linspace(0, video.times_s[-1], _TIMES)]

    def one() -> object:
        return system.run(video, ask, times[:1])

    def one_more() -> object:
        return system.run(video, other, times[:1])

    def singly() -> object:
        return [system.run(video, ask, [time_s]) for time_s in times]

    def forget() -> None:
        medvlm.store.clear()
        if isinstance(system.detector, GroundingDino):
            system.detector.store.clear()

    spent: list[Mapping[str, float]] = []

    def batched_and_noted() -> None:
        spent.append(system.run(video, ask, times).grounding.seconds)

    one()
    again = compare_ms(one, one_more, repeats, before=forget)
    together = compare_ms(singly, batched_and_noted, repeats, before=forget, between=forget)
    card = system.device.type == "cuda"
    return [
        Line("ground, 1 time", again.first_ms, "ms", repeats),
        Line("ground, another question on that frame", again.second_ms, "ms", repeats),
        _ratio("another question against the first", again.ratio, repeats, 0.6),
        Line(
            f"ground, {_TIMES} times together",
            together.second_ms,
            "ms",
            repeats,
            "<= 1500 ms" if card else "",
            together.second_ms <= 1500 if card else None,
        ),
        *_stage_lines(spent),
        Line(f"ground, {_TIMES} times one by one", together.first_ms, "ms", repeats),
        _ratio("together against one by one", together.ratio, repeats, 0.7),
    ]


def _ratio(name: str, ratio: float, repeats: int, most: float) -> Line:
    return Line(name, ratio, "x", repeats, f"<= {most} x", ratio <= most)


def _stage_lines(spent: Sequence[Mapping[str, float]]) -> list[Line]:
    """Medians of each stage of runs that answer the same times."""
    return [
        Line(
            f"  of these, {stage}",
            statistics.median(run.get(stage, 0.0) for run in spent) * 1000,
            "ms",
            len(spent),
        )
        for stage in spent[0]
    ]


def _held_mb() -> float:
    """Memory the process holds now; its peak where the system does not tell."""
    status = Path("/proc/self/statm")
    if not status.is_file():
        return _peak_mb()
    return int(status.read_text().split()[1]) * resource.getpagesize() / (1 << 20)


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
