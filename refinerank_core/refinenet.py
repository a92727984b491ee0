"""RefineNet: reads the MedVLM's features at each candidate box, corrects it and scores it.

Source: RefineRank, arXiv:2608.23928 (architecture, bounds); names follow the released checkpoint.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from refinerank_core.boxes import DELTA_BOUNDS, denormalise, normalise
from refinerank_core.boxes_torch import decode_delta
from refinerank_core.errors import ModelError
from refinerank_core.models.protocols import Encoding
from refinerank_core.roi import pool_regions
from refinerank_core.structures import CandidatePool, Float32, Refinement

METADATA_VALUES = 12


@dataclass(frozen=True)
class RefineNetConfig:
    """Dimensions of a RefineNet. The defaults are the published size (1,251,334 parameters).

    Attributes:
        query_dim: width of q_last.
        final_dim: width of the merged tokens.
        inter_dim: width of the vision blocks.
        inter_block: the vision block that r_inter is read from.
        d_model: width of each projection.
        hidden_dim: width of the fusion layers.
        dropout: share dropped in training.
    """

    query_dim: int = 3584
    final_dim: int = 3584
    inter_dim: int = 1280
    inter_block: int = 23
    d_model: int = 128
    hidden_dim: int = 256
    dropout: float = 0.1


class RefineNet(nn.Module):
    """Scores and corrects each candidate on its own; candidates do not see each other.

    The standardiser of the 12 metadata values (mean and deviation over the training set) travels
    with the weights as two buffers.
    """

    standardizer_mean: Tensor
    standardizer_std: Tensor
    delta_bounds: Tensor

    def __init__(self, config: RefineNetConfig) -> None:
        super().__init__()
        self.config = config
        width = config.d_model
        self.query_projection = nn.Linear(config.query_dim, width)
        self.final_projection = nn.Linear(config.final_dim, width)
        self.inter_projection = nn.Linear(config.inter_dim, width)
        self.structure_projection = nn.Linear(2 * METADATA_VALUES, width)
        self.query_norm = nn.LayerNorm(width)
        self.candidate_norm = nn.LayerNorm(width)
        self.fusion = nn.Sequential(
            nn.Linear(3 * width, config.hidden_dim),
            nn.GELU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.hidden_dim, config.hidden_dim),
            nn.GELU(),
            nn.Dropout(config.dropout),
        )
        self.quality_head = nn.Linear(config.hidden_dim, 2)
        self.delta_head = nn.Linear(config.hidden_dim, 4)
        self.register_buffer("standardizer_mean", torch.zeros(METADATA_VALUES))
        self.register_buffer("standardizer_std", torch.ones(METADATA_VALUES))
        self.register_buffer("delta_bounds", torch.tensor(DELTA_BOUNDS), persistent=False)

    def structure(self, metadata: Tensor) -> Tensor:
        """f_dino of raw metadata.

        Args:
            metadata: (..., 12) float, NaN where a value is missing.

        Returns:
            (..., 24): standardised values (0 where missing), then the missing flags.
        """
        missing = torch.isnan(metadata)
        values = (metadata - self.standardizer_mean) / self.standardizer_std
        return torch.cat((values.masked_fill(missing, 0.0), missing.to(values.dtype)), dim=-1)

    def forward(
        self, q_last: Tensor, r_final: Tensor, r_inter: Tensor, metadata: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores and corrections.

        Args:
            q_last: (..., query_dim).
            r_final: (..., N, final_dim), pooled at the original boxes.
            r_inter: (..., N, inter_dim), pooled at the original boxes.
            metadata: (..., N, 12) raw values, NaN where missing.

        Returns:
            (..., N, 2) logits of the original's and the refined box's quality, and (..., N, 4)
            delta within DELTA_BOUNDS.
        """
        query = self.query_norm(self.query_projection(F.normalize(q_last, dim=-1)))
        candidate = self.candidate_norm(
            self.final_projection(F.normalize(r_final, dim=-1))
            + self.inter_projection(F.normalize(r_inter, dim=-1))
            + self.structure_projection(self.structure(metadata))
        )
        query = query.unsqueeze(-2).expand_as(candidate)
        fused = self.fusion(torch.cat((candidate, query, candidate * query), dim=-1))
        delta = torch.tanh(self.delta_head(fused)) * self.delta_bounds
        return self.quality_head(fused), delta


@dataclass(frozen=True, eq=False)
class RegionFeatures:
    """What RefineNet reads of one frame's pool.

    Attributes:
        q_last: (Dq,) float32.
        r_final: (N, Df) float32.
        r_inter: (N, Di) float32.
        metadata: (N, 12) float32, NaN where missing.
    """

    q_last: Tensor
    r_final: Tensor
    r_inter: Tensor
    metadata: Tensor


def region_features(
    encoding: Encoding, pool: CandidatePool, *, size_wh: tuple[int, int], inter_block: int
) -> RegionFeatures:
    """Pool the MedVLM's grids at every original box.

    Args:
        encoding: the MedVLM's features of the frame and the question.
        pool: the frame's candidates.
        size_wh: the frame's size in pixels, the unit of the pool's boxes.
        inter_block: vision block of r_inter.
    """
    grid = encoding.vision.final
    boxes = torch.from_numpy(normalise(pool.boxes, size_wh=size_wh)).to(grid.device)
    return RegionFeatures(
        q_last=encoding.q_last.float(),
        r_final=pool_regions(grid, boxes),
        r_inter=pool_regions(encoding.vision.blocks[inter_block], boxes),
        metadata=torch.from_numpy(pool.metadata.copy()).to(grid.device),
    )


def refine(
    net: RefineNet | Sequence[RefineNet],
    features: RegionFeatures,
    pool: CandidatePool,
    *,
    size_wh: tuple[int, int],
) -> Refinement:
    """Score and correct every candidate of one frame.

    Args:
        net: a RefineNet; or several that read the same features, such as those of several seeds:
            their scores and corrections are averaged.
        features: of the pool's boxes.
        pool: the candidates.
        size_wh: of the frame.

    Raises:
        ModelError: a score is not a finite number.
    """
    nets = (net,) if isinstance(net, RefineNet) else tuple(net)
    with torch.inference_mode():
        said = [
            one(features.q_last, features.r_final, features.r_inter, features.metadata)
            for one in nets
        ]
        scores, delta = (torch.stack(parts).mean(dim=0) for parts in zip(*said, strict=True))
        unit = torch.from_numpy(normalise(pool.boxes, size_wh=size_wh)).to(delta)
        refined, valid = decode_delta(unit, delta)
        told = _numpy(torch.cat((scores, delta, refined, valid[:, None].to(delta)), dim=1))
    if not np.isfinite(told[:, :2]).all():
        raise ModelError(
            "RefineNet gave scores that are not numbers. Check its checkpoint and the profile."
        )
    return Refinement(
        score_original=told[:, 0].copy(),
        score_refined=told[:, 1].copy(),
        delta=told[:, 2:6].copy(),
        boxes=denormalise(told[:, 6:10], size_wh=size_wh),
        valid=told[:, 10] > 0,
    )


def unrefined(pool: CandidatePool) -> Refinement:
    """What stands for RefineNet's word where none is trained for the MedVLM.

    Every box stays as it is, its score is the logit of its native score, and no refined box exists.
    """
    native = np.clip(pool.native_scores.astype(np.float64), 1e-6, 1 - 1e-6)
    scores = np.log(native / (1 - native)).astype(np.float32)
    return Refinement(
        score_original=scores,
        score_refined=scores.copy(),
        delta=np.zeros((len(pool), 4), np.float32),
        boxes=pool.boxes.copy(),
        valid=np.zeros(len(pool), np.bool_),
    )


def _numpy(tensor: Tensor) -> Float32:
    return tensor.float().cpu().numpy().astype(np.float32)
