"""Where compiled kernels are kept."""

import os
from pathlib import Path


def can_be_kept() -> bool:
    """Can compiled kernels be kept there? To be asked once the first ones have been compiled."""
    return cache_folder().is_dir() and os.access(cache_folder(), os.W_OK)


def cache_folder() -> Path:
    """Where compiled kernels are kept: $SWAG_CACHE_DIR, else swag's folder in the user's cache."""
    chosen = os.environ.get("SWAG_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swag"
