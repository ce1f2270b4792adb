"""Power cuts: a disk that records what was flushed, and the images that a cut may leave on it."""
