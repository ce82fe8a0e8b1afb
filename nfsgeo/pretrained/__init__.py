"""Small trained models that come with nfsgeo, a folder each.

A folder is that of a run, without what only training needs; ``card.md`` in it tells
what the model was trained on, how well it does and what it is not for. Made by
``make pretrained``.
"""

from pathlib import Path

__all__ = ["FOLDER", "NAMES"]

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(card.parent.name for card in FOLDER.glob("*/card.md")))
