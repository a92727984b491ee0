"""The store of decoded pictures stays within its bytes and lets the longest unused go first."""

from av import VideoFrame

from refinerank_core.gop_cache import GopCache

PICTURE_BYTES = 64 * 64 * 3 // 2  # 4:2:0


def test_the_longest_unused_picture_goes_first() -> None:
    cache = GopCache(limit_bytes=3 * PICTURE_BYTES)
    for index in range(3):
        cache.put(index, VideoFrame(64, 64, "yuv420p"))
    cache.get(0)

    cache.put(3, VideoFrame(64, 64, "yuv420p"))

    assert [cache.get(index) is not None for index in range(4)] == [True, False, True, True]
    assert cache.used_bytes <= 3 * PICTURE_BYTES


def test_a_thousand_pictures_stay_within_the_limit() -> None:
    cache = GopCache(limit_bytes=10 * PICTURE_BYTES)

    for index in range(1000):
        cache.put(index, VideoFrame(64, 64, "yuv420p"))

    assert len(cache) == 10
    assert cache.used_bytes == 10 * PICTURE_BYTES


def test_the_newest_picture_stays_even_when_it_alone_is_over_the_limit() -> None:
    cache = GopCache(limit_bytes=1)

    cache.put(7, VideoFrame(64, 64, "yuv420p"))

    assert cache.get(7) is not None


def test_a_cleared_cache_holds_nothing() -> None:
    cache = GopCache()
    cache.put(7, VideoFrame(64, 64, "yuv420p"))

    cache.clear()

    assert (len(cache), cache.used_bytes, cache.get(7)) == (0, 0, None)
