"""The bounded cache of vision features."""

import torch

from refinerank_core.models.feature_store import FeatureStore
from refinerank_core.models.protocols import VisionFeatures


def features(numbers: int) -> VisionFeatures:
    """Features that hold 4 * numbers bytes."""
    return VisionFeatures(blocks={}, final=torch.zeros(1, 1, numbers), resized_wh=(28, 28))


def test_the_least_recently_used_features_go_first() -> None:
    store: FeatureStore[VisionFeatures] = FeatureStore(limit_bytes=80)
    store.put("a", features(10))
    store.put("b", features(10))
    store.get("a")

    store.put("c", features(10))

    assert store.get("b") is None
    assert store.get("a") is not None
    assert store.get("c") is not None
    assert store.held_bytes == 80


def test_an_entry_over_the_limit_is_not_kept() -> None:
    store: FeatureStore[VisionFeatures] = FeatureStore(limit_bytes=80)
    store.put("a", features(10))

    store.put("large", features(21))

    assert store.get("large") is None
    assert store.get("a") is not None


def test_putting_twice_counts_once() -> None:
    store: FeatureStore[VisionFeatures] = FeatureStore(limit_bytes=80)

    store.put("a", features(10))
    store.put("a", features(12))

    assert len(store) == 1
    assert store.held_bytes == 48


def test_clearing_frees_everything() -> None:
    store: FeatureStore[VisionFeatures] = FeatureStore(limit_bytes=80)
    store.put("a", features(10))

    store.clear()

    assert store.get("a") is None
    assert store.held_bytes == 0
