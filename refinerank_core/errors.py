"""The error tree: what can go wrong in the world, in words fit for a clinician."""


class RefineRankError(Exception):
    """A fault of the input or the world. The text is one sentence: what, got, wanted, what to do.

    No traceback words, no full path, no patient name. A caller's mistake in code is a ValueError
    or TypeError instead.
    """


class VideoError(RefineRankError):
    """A video or frame folder cannot be opened, or a frame of it cannot be read."""


class QuestionError(RefineRankError):
    """A question is empty, too long, or names times that cannot be answered."""


class WeightsError(RefineRankError):
    """A checkpoint is missing, damaged, or does not fit its architecture."""


class ProfileError(RefineRankError):
    """A model profile is unknown or its file is wrong."""


class ModelError(RefineRankError):
    """A model gave a result that cannot be used, such as scores that are not numbers."""


class FormatError(RefineRankError):
    """A file to import or export does not hold what its format promises."""


class StoreError(RefineRankError):
    """The review database cannot be opened, read or written; what was confirmed before stays."""
