"""Static inputs and forcings by name, and cells by type, of arrays in memory."""

import numpy as np
import pytest

import nfsgeo


@pytest.mark.parametrize("own", [False, True])
def test_inputs_by_name_and_cells_by_type_are_those_given_otherwise(own, contents):
    """Static inputs by name are one array of all samples, or a list of arrays."""
    rng, nodes = np.random.default_rng(0), [[[0, 1, 2]], [[1, 2, 3], [0, 1, 3]]]
    sizes = [5, 5 + own]

    def made(*shape, whole=not own):
        arrays = [rng.integers(0, 7, (n, *shape)) for n in sizes]
        return np.stack(arrays) if whole else arrays

    same = {"u": made(2), "pos": made(2, whole=False), "t": [0, 1]}
    same["component_names"] = ["p"]
    types, wide, ahead = made(), made(2), made(2)
    by_name = nfsgeo.from_arrays(
        **same,
        static={"node_type": types, "w": wide},
        forcing={"u": ahead},
        cells={"triangle": nodes},
    )
    listed = nfsgeo.from_arrays(
        **same,
        static=[np.column_stack(parts) for parts in zip(types, wide, strict=True)],
        static_names=["node_type", "w_0", "w_1"],
        forcing=ahead,
        forcing_names=["u"],
        cells=[{"triangle": part} for part in nodes],
    )
    assert contents(by_name) == contents(listed)
