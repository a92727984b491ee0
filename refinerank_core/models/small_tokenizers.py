"""Tokenizers of a few kilobytes for small checkpoints of the two real architectures."""

import json
import string
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, trainers
from tokenizers.models import BPE
from transformers import BertTokenizer, Qwen2Tokenizer

CHAT_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "<|im_start|>{{ message.role }}\n"
    "{%- if message.content is string -%}{{ message.content }}"
    "{%- else -%}{%- for part in message.content -%}"
    "{%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>"
    "{%- elif part.type == 'video' -%}<|vision_start|><|video_pad|><|vision_end|>"
    "{%- else -%}{{ part.text }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
    "<|im_end|>\n"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}"
)
"""ChatML, the turn format of the Qwen family, with one place for a picture or a video."""

# One digit, one word or one mark at a time, so that a number is read digit by digit.
_PIECES = Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+")

# Ids that the GroundingDINO classes have written into their code: [CLS] [SEP] . ?
_FIXED_BERT_IDS = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
_FIXED_BERT_IDS |= {".": 1012, "?": 1029}


def chat_tokenizer(corpus: Iterable[str], *, vocabulary: int) -> Qwen2Tokenizer:
    """A byte-level tokenizer of the Qwen2 class: words of the corpus whole, all else in bytes.

    Args:
        corpus: texts whose words should become tokens; the same texts give the same tokenizer.
        vocabulary: upper limit of ordinary tokens (256 of them are the bytes).
    """
    learner = Tokenizer(BPE())
    learner.normalizer = normalizers.NFC()
    learner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(_PIECES, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    learner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=1,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    learner.train_from_iterator(corpus, trainer)
    vocab = learner.get_vocab()
    merges = _merges_of(learner)
    return Qwen2Tokenizer(
        vocab=vocab,
        merges=merges,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=[t for t in CHAT_TOKENS if t != "<|im_end|>"],
        chat_template=CHAT_TEMPLATE,
    )


def _merges_of(learner: Tokenizer) -> list[tuple[str, ...]]:
    merges: list[str | list[str]] = json.loads(learner.to_str())["model"]["merges"]
    return [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in merges]


def caption_vocabulary(words: Sequence[str]) -> list[str]:
    """Lines of a WordPiece vocabulary: the given words whole, every other word in letters.

    The marks and special tokens stand at the ids that the GroundingDINO classes expect; the gaps
    are filled with unused entries.
    """
    letters = string.ascii_lowercase + string.digits
    pieces = [*letters, *(f"##{letter}" for letter in letters), *"-,'/():;!&+"]
    lines = [f"[unused{place}]" for place in range(1030)]
    for token, place in _FIXED_BERT_IDS.items():
        lines[place] = token
    known = set(_FIXED_BERT_IDS)
    for token in (*pieces, *words):
        if token not in known:
            known.add(token)
            lines.append(token)
    return lines


def caption_tokenizer(words: Sequence[str], folder: Path) -> BertTokenizer:
    """A lower-casing WordPiece tokenizer over caption_vocabulary(words), saved into folder."""
    lines = caption_vocabulary(words)
    tokenizer = BertTokenizer(
        vocab={token: place for place, token in enumerate(lines)}, do_lower_case=True
    )
    tokenizer.save_pretrained(folder)
    return tokenizer
