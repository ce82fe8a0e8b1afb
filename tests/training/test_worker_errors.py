"""Errors of the user that happen in another process."""

import pytest
from torch.utils.data import DataLoader, Dataset

from nfsgeo.errors import UserError
from nfsgeo.training.processes import errors_of_workers


class Broken(Dataset[int]):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __len__(self) -> int:
        return 2

    def __getitem__(self, item: int) -> int:
        raise self.error


def test_an_error_of_a_reading_process_keeps_its_parts() -> None:
    broken = Broken(UserError("sample 3: of x", "finite values", "repair it; or not"))
    with pytest.raises(UserError) as caught, errors_of_workers():
        next(iter(DataLoader(broken, num_workers=1)))
    assert str(caught.value) == (
        "sample 3: of x: expected finite values; repair it; or not"
    )


def test_a_defect_stays_one() -> None:
    with pytest.raises(ZeroDivisionError), errors_of_workers():
        next(iter(DataLoader(Broken(ZeroDivisionError()), num_workers=1)))
