"""An option beyond the paper: read the MedVLM's features at each refined box before it is scored.

The published method pools at the original box only and predicts the refined box's quality from
there. Here the refined box is put to RefineNet as a candidate of its own, and what RefineNet says
of a candidate as it stands becomes its score.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from refinerank_core.candidates import moved
from refinerank_core.models.protocols import Encoding
from refinerank_core.refinenet import RefineNet, refine, region_features
from refinerank_core.structures import CandidatePool, Refinement


def reencoded(
    net: RefineNet | Sequence[RefineNet],
    encoding: Encoding,
    pool: CandidatePool,
    refinement: Refinement,
    *,
    size_wh: tuple[int, int],
    inter_block: int,
) -> Refinement:
    """The same refined boxes, each scored by the features inside it.

    Args:
        net: as for `refine`.
        encoding: the MedVLM's features of the frame and the question.
        pool: the candidates.
        refinement: what RefineNet said of them.
        size_wh: of the frame.
        inter_block: vision block that the networks read.
    """
    boxes = np.where(refinement.valid[:, None], refinement.boxes, pool.boxes)
    there = moved(pool, boxes.astype(np.float32), size_wh)
    features = region_features(encoding, there, size_wh=size_wh, inter_block=inter_block)
    again = refine(net, features, there, size_wh=size_wh)
    return replace(refinement, score_refined=again.score_original)
