"""Errors of the user that were found in another process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from torch.multiprocessing.spawn import ProcessRaisedException

from nfsgeo.errors import UserError

__all__ = ["errors_of_workers"]

LINE = re.compile(r"^nfsgeo\.errors\.UserError: (.*): expected (.*); (.*?)$", re.M)


@contextmanager
def errors_of_workers() -> Iterator[None]:
    """Re-raises a :class:`UserError` that a reading or training process died of.

    Such a process hands over no exception but the text of its traceback.
    """
    try:
        yield
    except (ProcessRaisedException, RuntimeError) as error:
        found = LINE.findall(str(error))
        if not found:
            raise
        raise UserError(*found[-1]) from None
