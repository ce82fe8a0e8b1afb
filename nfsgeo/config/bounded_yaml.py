"""YAML within bounds: aliases of a few lines can stand for more than memory holds."""

from __future__ import annotations

from itertools import chain
from math import inf
from typing import Any

import yaml

__all__ = ["LONGEST", "parse_yaml"]

LONGEST, MOST = 2**20, 10**5  # characters of a text, values with those of aliases


def parse_yaml(text: str) -> Any:
    """The content of a text, of plain types.

    Raises:
        ValueError: It is not YAML, or larger than any configuration.
    """
    if len(text) > LONGEST:
        raise ValueError(f"{len(text):,} characters, of at most {LONGEST:,}")
    try:
        node = yaml.compose(text, yaml.SafeLoader)
        if node is not None and _size(node, {}) > MOST:
            raise ValueError(f"more than {MOST:,} values by its aliases")
        return node and yaml.SafeLoader("").construct_document(node)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from None


def _size(node: yaml.Node, sizes: dict[int, float]) -> float:
    """Return how many values a node has with those of its aliases."""
    if id(node) not in sizes:
        sizes[id(node)] = inf  # of a node inside itself
        if isinstance(node, yaml.ScalarNode):  # a number may have no end
            plain = node.tag.endswith(":str") or len(node.value) < 1000
            sizes[id(node)] = 1 if plain else inf
        else:
            pairs = isinstance(node, yaml.MappingNode)
            parts = chain(*node.value) if pairs else node.value
            sizes[id(node)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(node)]
