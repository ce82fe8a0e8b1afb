"""Code of users that adds models, equations, losses, transforms, formats or solvers.

A plugin adds to registries such as :data:`nfsgeo.models.MODELS` when it is imported.
Installed packages name theirs as entry points of the group ``nfsgeo.plugins``; a file
or a module is named by ``--import``. Nothing else is imported: a run records what it
was trained with, but that it does so makes no code run.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from nfsgeo.errors import UserError

__all__ = ["GROUP", "import_code", "imported", "load_plugins"]

GROUP = "nfsgeo.plugins"
_imported: list[str] = []

logger = logging.getLogger(__name__)


@cache
def load_plugins() -> None:
    """Import the plugins of installed packages; a warning names those that fail."""
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:  # of code that is not ours
            package = point.dist.name if point.dist else point.value
            logger.warning(
                "plugin %s of %s was left out: %s: %s",
                *(point.name, package, type(error).__name__, error),
            )


def import_code(names: Iterable[str]) -> None:
    """Import files or modules of the user.

    Args:
        names: Files such as ``my.py``, or modules that can be imported.

    Raises:
        UserError: There is no such file or module, or another module has the name of
            the file.
    """
    for name in names:
        path = Path(name).expanduser().resolve()
        module, todo = name, "check the name, or install it"
        if path.suffix == ".py":
            if not path.is_file():
                todo = "check the name, or put the file back"
                raise UserError(f"--import {name}", "an existing file", todo)
            name, module = str(path), path.stem
            # By its own name, so that processes that this one starts find it as well.
            if str(path.parent) not in sys.path:
                sys.path.insert(0, str(path.parent))
        spec = find_spec(module.partition(".")[0])
        if spec is None:
            raise UserError(f"--import {name}", "a module or a .py file", todo)
        if path.suffix == ".py" and spec.origin != name:
            given = f"--import {name}, whose name another module has"
            raise UserError(given, "a name of its own", "rename the file")
        try:
            import_module(module)
        except UserError:
            raise
        except Exception as error:  # of code that is not ours
            *_, (_, line) = traceback.walk_tb(error.__traceback__)
            given = f"--import {name} ({type(error).__name__}: {error}, line {line})"
            raise UserError(given, "code that can be imported", "repair it") from error
        if name not in _imported:
            _imported.append(name)


def imported() -> tuple[str, ...]:
    """Return what :func:`import_code` has imported in this process."""
    return tuple(_imported)
