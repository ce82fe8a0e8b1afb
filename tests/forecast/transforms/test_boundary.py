"""Distance and direction to the boundary as inputs."""

from collections.abc import Callable

import torch
from torch_geometric.data import Batch, Data

from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import BoundaryInputs
from nfsgeo.geometry import Domain, Region

WALL = [[0.99, -1.0], [1.01, -1.0], [1.01, 2.0], [0.99, 2.0]]


def test_the_way_to_a_wall_is_an_input_at_every_time_step(
    forecaster_of: Callable[..., Forecaster],
) -> None:
    domain = Domain((0, 0), (2, 1), (False, False), Region.polygons([WALL]))
    module = forecaster_of(lambda x, graphs: x, BoundaryInputs(), domain=domain, n_in=2)
    assert module.model.problem.in_components == 1 + 3
    x = torch.randn(2, 2, 1)
    pos = torch.tensor([[0.5, 0.5], [1.61, 0.2]], dtype=torch.float64)
    seen = module.network_inputs(Batch.from_data_list([Data(x=x, pos=pos)]))
    assert torch.equal(seen[..., :1], x)
    # In the normalised box, half as large: 0.49 to the right and 0.6 to the left.
    expected = torch.tensor([[0.245, 1.0, 0.0], [0.3, -1.0, 0.0]])
    torch.testing.assert_close(seen[..., 1:], expected[:, None].expand(-1, 2, -1))
