"""GroundingDINO as its authors wrote it (package groundingdino-py), for their own `.pth` files.

The package was written for an older transformers: its text encoder calls methods that are gone.
While a model is built, two names in the package's memory stand for parts of ours; no file of it is
touched. It needs no compiled operator and runs on the CPU and on CUDA.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from refinerank_core.errors import ModelError, WeightsError
from refinerank_core.models.backbone_memory import BackboneMemory
from refinerank_core.models.official_weights import POINTS, OfficialSizes

_POSITION_TEMPERATURE = 20
_building = Lock()


class TextEncoder(nn.Module):
    """A BertModel called the way groundingdino-py calls it: a mask per pair of tokens."""

    def __init__(self, bert_model: Any) -> None:
        super().__init__()
        self.config = bert_model.config
        self.embeddings = bert_model.embeddings
        self.encoder = bert_model.encoder
        self.pooler = bert_model.pooler

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Hidden states under "last_hidden_state".

        Args:
            input_ids, token_type_ids, position_ids: (B, L).
            attention_mask: (B, L) or (B, L, L) bool, True where a token may be looked at.
        """
        states = self.embeddings(
            input_ids=input_ids, token_type_ids=token_type_ids, position_ids=position_ids
        )
        allowed = attention_mask.bool()
        if allowed.ndim == 2:
            allowed = allowed[:, None, :].expand(-1, allowed.shape[1], -1)
        bias = torch.zeros(allowed.shape, dtype=states.dtype, device=states.device)
        bias.masked_fill_(~allowed, torch.finfo(states.dtype).min)
        encoded = self.encoder(states, attention_mask=bias[:, None])
        return {"last_hidden_state": encoded.last_hidden_state}


class OfficialGroundingDino(nn.Module):
    """The official network behind the call of the transformers class."""

    def __init__(self, net: Any, nested: Any, cache_bytes: int) -> None:
        super().__init__()
        self.net = net
        self._nested = nested
        self.memory = BackboneMemory(
            _AsPairs(net.backbone[0], nested),
            net.input_proj,
            len(net.backbone.num_channels),
            cache_bytes,
        )
        net.backbone[0], net.input_proj = _AsNested(self.memory, nested), self.memory.stand_ins
        net.tokenizer = _already_tokenized

    def forward(self, *, pixel_values: Tensor, pixel_mask: Tensor, **text: Tensor) -> Any:
        """Logits (B, queries, 256) and pred_boxes (B, queries, 4) cxcywh in 0..1.

        Args:
            pixel_values: (B, 3, H, W).
            pixel_mask: (B, H, W), 1 on the picture and 0 on padding.
            text: input_ids, token_type_ids and attention_mask, (B, L) each.
        """
        output = self.net(
            self._nested(pixel_values, ~pixel_mask.bool()), captions=_Tokens(dict(text))
        )
        return SimpleNamespace(logits=output["pred_logits"], pred_boxes=output["pred_boxes"])


class _Tokens(dict[str, Tensor]):
    """Token tensors with the two habits of a BatchEncoding that the network relies on."""

    def to(self, device: torch.device) -> "_Tokens":
        return _Tokens({name: tensor.to(device) for name, tensor in self.items()})

    @property
    def attention_mask(self) -> Tensor:
        return self["attention_mask"]


def _already_tokenized(tokens: _Tokens, padding: str, return_tensors: str) -> _Tokens:
    """Stands where the network's tokenizer stood: the caption comes in as tokens."""
    return tokens


class _AsPairs(nn.Module):
    """The official backbone with the call of the transformers one."""

    def __init__(self, backbone: Any, nested: Any) -> None:
        super().__init__()
        self.backbone = backbone
        self._nested = nested

    def forward(self, pixel_values: Tensor, pixel_mask: Tensor) -> list[tuple[Tensor, Tensor]]:
        levels = self.backbone(self._nested(pixel_values, ~pixel_mask.bool()))
        return [(level.tensors, ~level.mask) for level in levels.values()]


class _AsNested(nn.Module):
    """The other way round, so that the backbone's memory stands between the two."""

    def __init__(self, memory: BackboneMemory, nested: Any) -> None:
        super().__init__()
        self.memory = memory
        self._nested = nested

    def forward(self, samples: Any) -> dict[int, Any]:
        levels = self.memory(samples.tensors, ~samples.mask)
        return {place: self._nested(maps, ~mask) for place, (maps, mask) in enumerate(levels)}


def build_official(
    name: str,
    state: Mapping[str, Tensor],
    sizes: OfficialSizes,
    tokenizer: Any,
    *,
    cache_bytes: int,
) -> OfficialGroundingDino:
    """The official network with an official file's weights.

    Args:
        name: of the file, for errors.
        state: what read_official gave.
        sizes: what measure gave of it.
        tokenizer: the text encoder's tokenizer.
        cache_bytes: memory for the backbone's feature maps.

    Raises:
        ModelError: the package is not installed.
        WeightsError: a tensor is missing, unknown or of another size.
    """
    net, nested = _build(sizes, tokenizer)
    try:
        net.load_state_dict(dict(state))
    except RuntimeError as error:
        first = str(error).strip().splitlines()[-1].strip()
        raise WeightsError(
            f"{name}: the tensors do not fit ({first[:160]}). Use a complete official file."
        ) from error
    model = OfficialGroundingDino(net, nested, cache_bytes)
    return model.eval().requires_grad_(False)


def _build(sizes: OfficialSizes, tokenizer: Any) -> tuple[Any, Any]:
    """The bare network with weights of chance, and the package's class for padded pictures."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the package imports by names that timm has moved
            from groundingdino.models.GroundingDINO import groundingdino as package
            from groundingdino.models.GroundingDINO.backbone.backbone import Joiner
            from groundingdino.models.GroundingDINO.backbone.position_encoding import (
                PositionEmbeddingSineHW,
            )
            from groundingdino.models.GroundingDINO.backbone.swin_transformer import (
                SwinTransformer,
            )
            from groundingdino.models.GroundingDINO.transformer import Transformer
            from groundingdino.util.misc import NestedTensor
    except ImportError as error:
        raise ModelError(
            "The detector backend groundingdino-py is not installed. Run "
            "'pip install groundingdino-py==0.4.0', or convert the file with "
            "'python -m refinerank_core convert-detector'."
        ) from error
    stages = len(sizes.depths)
    swin = SwinTransformer(
        embed_dim=sizes.embed,
        depths=list(sizes.depths),
        num_heads=list(sizes.heads),
        window_size=sizes.window,
        drop_path_rate=0.0,
        out_indices=tuple(range(stages - 3, stages)),
    )
    position = PositionEmbeddingSineHW(
        sizes.width // 2,
        temperatureH=_POSITION_TEMPERATURE,
        temperatureW=_POSITION_TEMPERATURE,
        normalize=True,
    )
    backbone = Joiner(swin, position)
    backbone.num_channels = swin.num_features[-3:]
    transformer = Transformer(
        d_model=sizes.width,
        nhead=sizes.heads_fusion,
        num_queries=sizes.queries,
        num_encoder_layers=sizes.encoder_layers,
        num_decoder_layers=sizes.decoder_layers,
        dim_feedforward=sizes.feed_forward,
        dropout=0.0,
        return_intermediate_dec=True,
        query_dim=4,
        num_feature_levels=sizes.levels,
        enc_n_points=POINTS,
        dec_n_points=POINTS,
        learnable_tgt_init=True,
        two_stage_type="standard",
        embed_init_tgt=True,
        use_text_enhancer=True,
        use_fusion_layer=True,
        use_text_cross_attention=True,
        text_dropout=0.0,
        fusion_dropout=0.0,
    )
    with _our_text_encoder(package, sizes, tokenizer):
        net = package.GroundingDINO(
            backbone,
            transformer,
            num_queries=sizes.queries,
            aux_loss=True,
            iter_update=True,
            query_dim=4,
            num_feature_levels=sizes.levels,
            nheads=sizes.heads_fusion,
            two_stage_type="standard",
            two_stage_bbox_embed_share=False,
            two_stage_class_embed_share=False,
        )
    return net, NestedTensor


@contextmanager
def _our_text_encoder(package: Any, sizes: OfficialSizes, tokenizer: Any) -> Iterator[None]:
    """While a network is built, let the package find our text encoder under its own names."""
    source = SimpleNamespace(
        get_tokenlizer=lambda _name: tokenizer,
        get_pretrained_language_model=lambda _name: _text_encoder(sizes),
    )
    with _building:
        before = package.BertModelWarper, package.get_tokenlizer
        package.BertModelWarper, package.get_tokenlizer = TextEncoder, source
        try:
            yield
        finally:
            package.BertModelWarper, package.get_tokenlizer = before


def _text_encoder(sizes: OfficialSizes) -> Any:
    config = BertConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.text_width,
        num_hidden_layers=sizes.text_layers,
        num_attention_heads=sizes.text_heads,
        intermediate_size=sizes.text_feed_forward,
        max_position_embeddings=sizes.positions,
        attn_implementation="eager",
    )
    return BertModel(config)


def official_file(source: str) -> Path:
    """The `.pth` file that a detector source names.

    Raises:
        WeightsError: the source is no such file.
    """
    path = Path(source)
    if path.suffix != ".pth":
        raise WeightsError(
            f"{path.name}: the backend groundingdino-py reads an official .pth file. "
            "Name one in detector.source or detector.file."
        )
    return path
