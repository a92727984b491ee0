"""Box arithmetic against numbers worked out by hand, numpy and torch side by side."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from refinerank_core import boxes, boxes_torch
from refinerank_core.structures import Float32

Four = list[float]

INVERTED = ([10.0, 40, 20, 20], [60.0, 50, 40, 40])
DEGENERATE = [
    pytest.param(*INVERTED, id="inverted"),
    pytest.param([0.0, 0, 0, 0], [0.0, 0, 0, 0], id="two points"),
    pytest.param([5.0, 5, 5, 5], [0.0, 0, 10, 10], id="a point in a box"),
    pytest.param([0.0, 5, 10, 5], [0.0, 5, 10, 5], id="a line"),
    pytest.param([math.nan, 0, 1, 1], [0.0, 0, 1, 1], id="not a number"),
    pytest.param([0.0, 0, math.inf, 1], [0.0, 0, math.inf, 1], id="infinite"),
]
OVERLAPS = [
    pytest.param([0.0, 0, 10, 10], [0.0, 0, 10, 10], 1.0, 1.0, id="the same"),
    pytest.param([0.0, 0, 10, 10], [5.0, 0, 15, 10], 1 / 3, 1 / 3, id="half across"),
    pytest.param([0.0, 0, 10, 10], [10.0, 0, 20, 10], 0.0, 0.0, id="touching"),
    pytest.param([0.0, 0, 10, 10], [20.0, 0, 30, 10], 0.0, -1 / 3, id="a gap between"),
    pytest.param([0.0, 0, 10, 10], [2.0, 2, 7, 6], 0.2, 0.2, id="one inside the other"),
    pytest.param([0.0, 0, 1e20, 1e20], [0.0, 0, 1e20, 1e20], 1.0, 1.0, id="huge"),
]


def row(*values: float) -> Float32:
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize(("a", "b", "iou", "giou"), OVERLAPS)
def test_overlaps_have_their_known_value(a: Four, b: Four, iou: float, giou: float) -> None:
    assert boxes.iou(row(*a), row(*b)) == pytest.approx(iou)
    assert boxes.giou(row(*a), row(*b)) == pytest.approx(giou)


@pytest.mark.parametrize(("a", "b", "iou", "giou"), OVERLAPS)
def test_torch_overlaps_have_the_same_value(a: Four, b: Four, iou: float, giou: float) -> None:
    assert boxes_torch.iou(torch.tensor(a), torch.tensor(b)).item() == pytest.approx(iou)
    assert boxes_torch.giou(torch.tensor(a), torch.tensor(b)).item() == pytest.approx(giou)


@pytest.mark.parametrize(("a", "b"), DEGENERATE)
def test_a_degenerate_box_overlaps_nothing(a: Four, b: Four) -> None:
    assert boxes.iou(row(*a), row(*b)) == 0
    assert -1 <= boxes.giou(row(*a), row(*b)) <= 1


@pytest.mark.parametrize(("a", "b"), DEGENERATE)
def test_gradients_of_a_degenerate_box_are_finite(a: Four, b: Four) -> None:
    pair = torch.tensor([a, b], requires_grad=True)

    loss = (1 - boxes_torch.giou(pair[0], pair[1])) + boxes_torch.iou(pair[0], pair[1])
    loss.backward()  # type: ignore[no-untyped-call]

    assert math.isfinite(loss.item())
    assert pair.grad is not None
    assert torch.isfinite(pair.grad).all()


def test_what_overflows_float32_overlaps_nothing() -> None:
    huge = np.array([0.0, 0.0, 1e300, 1e300])

    assert boxes.iou(huge, huge) == 0
    assert -1 <= boxes.giou(huge, -huge) <= 1


def test_torch_overlaps_agree_with_numpy() -> None:
    rng = np.random.default_rng(11)
    corners = rng.integers(0, 8, (500, 2, 4)).astype(np.float32)  # many degenerate and touching
    a, b = corners[:, 0], corners[:, 1]

    iou = boxes_torch.iou(torch.from_numpy(a), torch.from_numpy(b))
    giou = boxes_torch.giou(torch.from_numpy(a), torch.from_numpy(b))

    assert iou.numpy() == pytest.approx(boxes.iou(a, b), abs=1e-6)
    assert giou.numpy() == pytest.approx(boxes.giou(a, b), abs=1e-6)


def test_a_tiny_box_keeps_its_overlaps_in_range() -> None:
    tiny = row(0, 0, 1e-9, 1e-9)

    assert 0 <= boxes.iou(tiny, tiny) <= 1
    assert -1 <= boxes.giou(tiny, tiny) <= 1


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (0, 0)])
def test_no_boxes_give_an_empty_matrix(rows: int, columns: int) -> None:
    a, b = np.zeros((rows, 4), np.float32), np.zeros((columns, 4), np.float32)

    assert boxes.iou_matrix(a, b).shape == (rows, columns)
    assert boxes.giou_matrix(a, b).shape == (rows, columns)


def test_a_matrix_holds_every_pair() -> None:
    a = np.stack((row(0, 0, 10, 10), row(20, 0, 30, 10)))
    b = np.stack((row(5, 0, 15, 10), row(0, 0, 10, 10), row(20, 0, 30, 10)))

    assert boxes.iou_matrix(a, b).ravel().tolist() == pytest.approx([1 / 3, 1, 0, 0, 0, 1])


def test_boxes_of_five_columns_are_refused() -> None:
    with pytest.raises(ValueError, match=r"boxes_b must be \(\.\.\., 4\), got \(2, 5\)"):
        boxes.iou(np.zeros((2, 4)), np.zeros((2, 5)))


def test_giou_of_boxes_apart_pulls_them_together() -> None:
    box = torch.tensor([0.1, 0.1, 0.2, 0.2], requires_grad=True)

    boxes_torch.giou(box, torch.tensor([0.6, 0.6, 0.8, 0.8])).backward()  # type: ignore[no-untyped-call]

    assert box.grad is not None
    assert bool((box.grad[2:] > 0).all())


def test_a_delta_moves_by_sides_and_scales_by_its_exponent() -> None:
    box = row(0.2, 0.4, 0.4, 0.8)  # centre 0.3, 0.6; sides 0.2, 0.4
    delta = row(0.5, -0.25, math.log(2), -math.log(2))  # centre 0.4, 0.5; sides 0.4, 0.2

    moved, valid = boxes.decode_delta(box, delta)

    assert moved.tolist() == pytest.approx([0.2, 0.4, 0.6, 0.6])
    assert bool(valid)


def test_encoding_finds_the_delta_that_decoding_undoes() -> None:
    delta = boxes.encode_delta(row(0.2, 0.4, 0.4, 0.8), row(0.2, 0.4, 0.6, 0.6))

    assert delta.tolist() == pytest.approx([0.5, -0.25, math.log(2), -math.log(2)], abs=1e-6)


def test_a_far_target_is_cut_to_the_bounds() -> None:
    delta = boxes.encode_delta(row(0.8, 0.8, 0.9, 0.9), row(0, 0, 0.4, 0.01))

    assert delta.tolist() == pytest.approx([-0.5, -0.5, math.log(2), -math.log(2)])


def test_a_degenerate_box_or_target_encodes_no_move() -> None:
    flat, sound = row(0.2, 0.2, 0.2, 0.4), row(0, 0, 1, 1)

    assert boxes.encode_delta(flat, sound).tolist() == [0, 0, 0, 0]
    assert boxes.encode_delta(sound, flat).tolist() == [0, 0, 0, 0]


def test_decoding_clips_to_the_frame() -> None:
    moved, valid = boxes.decode_delta(row(0.8, 0, 1, 0.2), row(0.5, -0.5, 0, 0))

    assert moved.tolist() == pytest.approx([0.9, 0, 1, 0.1])
    assert bool(valid)


def test_what_cannot_be_decoded_is_marked_and_zero() -> None:
    box = np.tile(row(0.4, 0.4, 0.6, 0.6), (4, 1))
    box[3] = row(0.5, 0.5, 0.5, 0.5)
    delta = np.stack(
        (row(math.nan, 0, 0, 0), row(9, 0, 0, 0), row(0, 0, 0, math.inf), row(0, 0, 0, 0))
    )

    moved, valid = boxes.decode_delta(box, delta)

    assert valid.tolist() == [False] * 4
    assert not moved.any()


def test_torch_deltas_agree_with_numpy() -> None:
    rng = np.random.default_rng(7)
    corners = np.sort(rng.random((64, 2, 2)), axis=1).reshape(64, 4).astype(np.float32)
    targets = np.sort(rng.random((64, 2, 2)), axis=1).reshape(64, 4).astype(np.float32)
    targets[:2] = 0

    delta = boxes.encode_delta(corners, targets)
    moved, valid = boxes.decode_delta(corners, delta)
    delta_t = boxes_torch.encode_delta(torch.from_numpy(corners), torch.from_numpy(targets))
    moved_t, valid_t = boxes_torch.decode_delta(torch.from_numpy(corners), delta_t)

    assert delta_t.numpy() == pytest.approx(delta, abs=1e-5)
    assert moved_t.numpy() == pytest.approx(moved, abs=1e-6)
    assert valid_t.tolist() == valid.tolist()


def test_a_loss_over_one_spoilt_delta_has_finite_gradients() -> None:
    raw = torch.zeros(3, 4)
    raw[1] = math.nan
    delta = raw.requires_grad_()
    box = torch.tensor([[0.2, 0.2, 0.4, 0.4], [0.2, 0.2, 0.4, 0.4], [0.5, 0.5, 0.5, 0.5]])
    truth = torch.tensor([0.2, 0.2, 0.5, 0.5])

    moved, valid = boxes_torch.decode_delta(box, delta)
    loss: Tensor = (1 - boxes_torch.giou(moved, truth)).sum()
    loss.backward()  # type: ignore[no-untyped-call]

    assert valid.tolist() == [True, False, False]
    assert delta.grad is not None
    assert torch.isfinite(delta.grad).all()
    assert bool(delta.grad[0].any())


@pytest.mark.parametrize(
    ("box", "clipped"),
    [
        pytest.param([-2.5, 0, 50, 102.5], [0.0, 0, 50, 100], id="overhangs by the limit"),
        pytest.param([-2.6, 0, 50, 100], None, id="overhangs by more"),
        pytest.param([201.0, 10, 202, 20], None, id="wholly outside, but near"),
        pytest.param([20.0, 20, 10, 30], None, id="inverted"),
        pytest.param([20.0, 20, math.nan, 30], None, id="not a number"),
        pytest.param([0.0, 0, 200, 100], [0.0, 0, 200, 100], id="the whole frame"),
    ],
)
def test_a_small_overhang_snaps_and_a_large_one_is_refused(box: Four, clipped: Four | None) -> None:
    inside, valid = boxes.clip_to_frame(np.array([box], np.float32), size_wh=(200, 100))

    assert valid.tolist() == [clipped is not None]
    assert inside[0].tolist() == (clipped or [0, 0, 0, 0])


@pytest.mark.parametrize(
    ("size_wh", "box", "clipped"),
    [
        pytest.param((162, 130), [23.0, 29, 163, 121], [23.0, 29, 162, 121], id="one past"),
        pytest.param((320, 320), [-2.0, -2, 325, 325], [0.0, 0, 320, 320], id="all round"),
        pytest.param((640, 360), [700.0, 10, 800, 50], None, id="wholly outside"),
        pytest.param((640, 360), [-40.0, 0, -67, -47], None, id="negative sides"),
    ],
)
def test_any_overhang_is_cut_on_request(
    size_wh: tuple[int, int], box: Four, clipped: Four | None
) -> None:
    inside, valid = boxes.clip_to_frame(
        np.array([box], np.float32), size_wh=size_wh, overhang=math.inf
    )

    assert valid.tolist() == [clipped is not None]
    assert inside[0].tolist() == (clipped or [0, 0, 0, 0])


def test_no_boxes_clip_to_no_boxes() -> None:
    inside, valid = boxes.clip_to_frame(np.zeros((0, 4), np.float32), size_wh=(10, 10))

    assert inside.shape == (0, 4)
    assert valid.shape == (0,)


def test_a_frame_without_area_is_refused() -> None:
    with pytest.raises(ValueError, match="size_wh must be positive"):
        boxes.clip_to_frame(np.zeros((1, 4), np.float32), size_wh=(0, 10))


@pytest.mark.parametrize(
    ("source", "numbers"),
    [
        pytest.param("pixels", [960.0, 540, 1440, 810], id="pixels"),
        pytest.param("unit", [0.5, 0.5, 0.75, 0.75], id="fractions"),
        pytest.param("thousand", [500.0, 500, 750, 750], id="thousandths"),
        pytest.param("unit_cxcywh", [0.625, 0.625, 0.25, 0.25], id="centre and sides"),
        pytest.param("pixels_xywh", [960.0, 540, 480, 270], id="corner and sides"),
    ],
)
def test_one_box_in_every_space_is_the_same_box(source: boxes.Space, numbers: Four) -> None:
    size_wh = (1920, 1080)

    pixels = boxes.convert(row(*numbers), source=source, target="pixels", size_wh=size_wh)
    back = boxes.convert(pixels, source="pixels", target=source, size_wh=size_wh)

    assert pixels.tolist() == [960, 540, 1440, 810]
    assert back.tolist() == numbers


def test_the_unit_box_means_what_its_stated_space_says() -> None:
    size_wh = (640, 480)
    box = row(0, 0, 1, 1)

    first_pixel = boxes.convert(box, source="pixels", target="pixels", size_wh=size_wh)
    whole_frame = boxes.convert(box, source="unit", target="pixels", size_wh=size_wh)

    assert first_pixel.tolist() == [0, 0, 1, 1]
    assert whole_frame.tolist() == [0, 0, 640, 480]


def test_an_unknown_space_is_refused() -> None:
    with pytest.raises(ValueError, match="space must be one of"):
        boxes.convert(row(0, 0, 1, 1), source="guess", target="unit", size_wh=(4, 4))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("corners", "corner_and_sides"),
    [
        ([5.0, 3, 15, 31], [5.0, 3, 10, 28]),
        ([0.0, 0, 640, 480], [0.0, 0, 640, 480]),
        ([171.5, 306.25, 199.5, 349.25], [171.5, 306.25, 28, 43]),
        ([0.0, 0, 1, 1], [0.0, 0, 1, 1]),
    ],
)
def test_no_pixel_is_added_between_corners_and_sides(corners: Four, corner_and_sides: Four) -> None:
    size_wh = (640, 480)

    sides = boxes.convert(row(*corners), source="pixels", target="pixels_xywh", size_wh=size_wh)
    back = boxes.convert(sides, source="pixels_xywh", target="pixels", size_wh=size_wh)

    assert sides.tolist() == corner_and_sides
    assert back.tolist() == corners


def test_a_fractional_centre_box_over_the_edge_clips_to_known_pixels() -> None:
    centred = row(0.293685, 0.634304, 0.58737, 0.731392)

    pixels = boxes.convert(centred, source="unit_cxcywh", target="pixels", size_wh=(640, 640))
    inside, _ = boxes.clip_to_frame(pixels[None], size_wh=(640, 640), overhang=math.inf)

    assert inside[0].tolist() == pytest.approx([0.0, 171.909, 375.917, 640.0], abs=0.01)


def test_normalising_uses_each_axis_own_size() -> None:
    fractions = boxes.normalise(row(50, 50, 100, 100), size_wh=(200, 100))

    assert fractions.tolist() == [0.25, 0.5, 0.5, 1]
    assert boxes.denormalise(fractions, size_wh=(200, 100)).tolist() == [50, 50, 100, 100]


def test_centres_and_corners_are_inverse() -> None:
    assert boxes.to_centres(row(2, 4, 6, 10)).tolist() == [4, 7, 4, 6]
    assert boxes.from_centres(row(4, 7, 4, 6)).tolist() == [2, 4, 6, 10]
