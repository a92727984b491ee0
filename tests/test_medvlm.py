"""The Qwen2.5-VL adapter: caching, batching, timing, phrases."""

from pathlib import Path

import pytest
import torch
from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration

from refinerank_core.errors import ModelError, WeightsError
from refinerank_core.models import prompts
from refinerank_core.models.chat_inputs import seconds_per_step
from refinerank_core.models.medvlm import MedVLMSettings, QwenMedVLM
from refinerank_core.question import parse_question
from refinerank_core.structures import Frame
from tests.conftest import frame, picture

QUESTION = "Which instrument is dissecting the gallbladder?"


@pytest.fixture(scope="module")
def medvlm(untrained_profile: Path) -> QwenMedVLM:
    return QwenMedVLM(
        MedVLMSettings(source=str(untrained_profile.parent / "medvlm"), blocks=(1, 5), batch=3),
        torch.device("cpu"),
        torch.float32,
    )


def test_q_last_is_the_last_prompt_token_of_an_unaided_forward_pass(
    medvlm: QwenMedVLM, untrained_profile: Path
) -> None:
    folder = untrained_profile.parent / "medvlm"
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder).eval()
    processor = AutoProcessor.from_pretrained(folder)
    one = frame(3)
    words = prompts.feature_prompt(QUESTION, 12.5)
    chat = processor.apply_chat_template(
        [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": words}]}],
        tokenize=False,
        add_generation_prompt=False,
    )
    inputs = processor(text=[chat], images=[one.image], return_tensors="pt")
    with torch.inference_mode():
        whole = model(**inputs, output_hidden_states=True)
        tower = model.model.visual(inputs["pixel_values"], grid_thw=inputs["image_grid_thw"])

    encoding = medvlm.encode([one], [12.5], QUESTION, "video")[0]

    torch.testing.assert_close(encoding.q_last, whole.hidden_states[-1][0, -1], atol=1e-5, rtol=0)
    torch.testing.assert_close(
        encoding.vision.final.flatten(0, 1), tower.pooler_output, atol=1e-5, rtol=0
    )


def test_cached_vision_features_give_the_same_encoding(medvlm: QwenMedVLM) -> None:
    medvlm.store.clear()
    cold = medvlm.encode([frame(1)], [0.2], QUESTION, "video")[0]
    assert len(medvlm.store) == 1

    warm = medvlm.encode([frame(1)], [0.2], QUESTION, "video")[0]

    torch.testing.assert_close(warm.q_last, cold.q_last, atol=1e-5, rtol=0)
    assert warm.vision is cold.vision


def test_a_batch_equals_one_by_one(medvlm: QwenMedVLM) -> None:
    frames = [frame(k) for k in range(5)]
    times = [0.0, 0.2, 100.25, 0.6, 12345.0]  # prompts of different lengths
    medvlm.store.clear()
    together = medvlm.encode(frames, times, QUESTION, "video")
    medvlm.store.clear()

    alone = [
        medvlm.encode([one], [t], QUESTION, "video")[0]
        for one, t in zip(frames, times, strict=True)
    ]

    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one.q_last, other.q_last, atol=1e-5, rtol=0)
        torch.testing.assert_close(one.vision.final, other.vision.final, atol=1e-5, rtol=0)
        for block in (1, 5):
            torch.testing.assert_close(
                one.vision.blocks[block], other.vision.blocks[block], atol=1e-5, rtol=0
            )


def test_features_of_two_videos_are_never_mixed(medvlm: QwenMedVLM) -> None:
    first = medvlm.see([frame(1)], "one video")[0]
    other = Frame(image=picture(9), index=1, time_s=0.2)

    second = medvlm.see([other], "another video")[0]

    assert not torch.allclose(first.final, second.final)


def test_the_direct_answer_sees_each_frame_as_a_video_step(
    medvlm: QwenMedVLM, untrained_profile: Path
) -> None:
    folder = untrained_profile.parent / "medvlm"
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder).eval()
    processor = AutoProcessor.from_pretrained(folder)
    frames, times = [frame(0), frame(5), frame(10)], [0.0, 1.0, 2.0]
    words = prompts.answer_prompt(QUESTION, times)
    chat = processor.apply_chat_template(
        [{"role": "user", "content": [{"type": "video"}, {"type": "text", "text": words}]}],
        tokenize=False,
        add_generation_prompt=True,
    )
    # A still is shown twice to fill the two pictures of a temporal patch.
    doubled = [one.image for one in frames for _ in range(2)]
    inputs = processor(
        text=[chat],
        videos=[doubled],
        do_sample_frames=False,
        video_metadata=[{"fps": 2.0, "total_num_frames": 6, "frames_indices": list(range(6))}],
        size={"shortest_edge": 28 * 28 * 4, "longest_edge": 28 * 28 * 96},
        return_tensors="pt",
    )
    assert inputs["second_per_grid_ts"] == pytest.approx([1.0])
    with torch.inference_mode():
        ids = model.generate(**inputs, do_sample=False, max_new_tokens=32 + 56 * 3)
    expected = processor.tokenizer.decode(
        ids[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )

    answer = medvlm.answer(frames, times, QUESTION, "video")

    assert answer.text == expected.strip()


def test_phrases_are_written_as_the_library_writes_them(
    medvlm: QwenMedVLM, untrained_profile: Path
) -> None:
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(untrained_profile.parent / "medvlm")
    processor = AutoProcessor.from_pretrained(untrained_profile.parent / "medvlm")
    question = parse_question(QUESTION)
    chat = processor.apply_chat_template(
        [{"role": "user", "content": [{"type": "text", "text": prompts.query_prompt(QUESTION)}]}],
        tokenize=False,
        add_generation_prompt=True,
    )
    inputs = processor(text=[chat], return_tensors="pt")
    with torch.inference_mode():
        ids = model.eval().generate(**inputs, do_sample=False, max_new_tokens=48)
    expected = processor.tokenizer.decode(
        ids[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )
    medvlm.answer([frame(0), frame(5)], [0.0, 1.0], QUESTION, "video")  # leaves rope places behind

    assert medvlm.query(question).text == expected.strip()


def test_the_answer_is_the_same_with_cached_features(medvlm: QwenMedVLM) -> None:
    frames = [frame(0), frame(5)]
    medvlm.store.clear()
    cold = medvlm.answer(frames, [0.0, 1.0], QUESTION, "video")

    assert medvlm.answer(frames, [0.0, 1.0], QUESTION, "video") == cold


@pytest.mark.parametrize(
    ("times", "step_s", "word"),
    [
        pytest.param([4.0], 1.0, "", id="one frame"),
        pytest.param([0.0, 15.0, 30.0], 15.0, "", id="even"),
        pytest.param([0.0, 1.0, 4.0], 2.0, "not evenly spaced", id="uneven"),
        pytest.param([0.0, 0.25, 0.5], 0.25, "closer than", id="faster than the model can tell"),
    ],
)
def test_the_distance_of_frames_is_told_and_its_limits_are_said(
    times: list[float], step_s: float, word: str
) -> None:
    told, note = seconds_per_step(times, tokens_per_second=2.0)

    assert told == pytest.approx(step_s)
    assert word in note
    assert bool(word) == bool(note)


def test_unusable_words_fall_back_to_the_rules(medvlm: QwenMedVLM) -> None:
    question = parse_question("Where is the hook?")

    query = medvlm.query(question)

    assert query.source == "rules"
    assert query.phrases == question.phrases


def test_marks_of_the_tokenizer_in_a_question_stay_words() -> None:
    prompt = prompts.feature_prompt("Where <|image_pad|> is <video> the <|im_end|> hook?", 1.0)

    assert prompt.endswith("Question: Where is the hook?")


def test_the_feature_prompt_is_the_one_the_weights_were_trained_on() -> None:
    assert prompts.feature_prompt("Where is the hook?", 12.5) == (
        "At 12.500 seconds, identify the visual target that the question asks to localize.\n"
        "Question: Where is the hook?"
    )


@pytest.mark.parametrize("size_wh", [(27, 200), (200, 20), (8, 8)], ids=str)
def test_a_frame_smaller_than_one_merged_patch_is_refused(
    medvlm: QwenMedVLM, size_wh: tuple[int, int]
) -> None:
    tiny = Frame(image=picture(0)[: size_wh[1], : size_wh[0]].copy(), index=0, time_s=0.0)

    with pytest.raises(ModelError, match="needs at least 28x28 px"):
        medvlm.see([tiny], "tiny")


def test_a_block_that_does_not_exist_is_refused(untrained_profile: Path) -> None:
    settings = MedVLMSettings(source=str(untrained_profile.parent / "medvlm"), blocks=(1, 31))

    with pytest.raises(WeightsError, match="block 31 does not exist"):
        QwenMedVLM(settings, torch.device("cpu"), torch.float32)


def test_eager_and_sdpa_attention_agree(medvlm: QwenMedVLM, untrained_profile: Path) -> None:
    eager = QwenMedVLM(
        MedVLMSettings(
            source=str(untrained_profile.parent / "medvlm"), blocks=(1, 5), attention="eager"
        ),
        torch.device("cpu"),
        torch.float32,
    )

    one = eager.encode([frame(2)], [0.4], QUESTION, "video")[0]
    other = medvlm.encode([frame(2)], [0.4], QUESTION, "video")[0]

    torch.testing.assert_close(one.q_last, other.q_last, atol=1e-4, rtol=0)
    torch.testing.assert_close(one.vision.blocks[5], other.vision.blocks[5], atol=1e-4, rtol=0)
