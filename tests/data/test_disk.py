"""A full disk: found beforehand, or told in one way. See also the command line's."""

import errno
import os
from pathlib import Path

import pytest

from nfsgeo.data.disk import growing
from nfsgeo.errors import UserError


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "Driver write request failed"),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        RuntimeError("Can't decrement id ref count (No space left on device)"),
    ],
)
def test_a_full_disk_is_told_in_one_way(error):
    message = "disk is full: expected room to write a.nc"
    with pytest.raises(UserError, match=message), growing(Path("a.nc")):
        raise error
