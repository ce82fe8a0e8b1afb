"""Executes the notebooks of the gallery: ``make notebooks``, or with paths of some.

Outputs are written into a notebook, and the picture that it saves beside it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def executed(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Return a notebook with its outputs.

    Args:
        notebook: The notebook, which is changed.
        folder: The folder that it runs in.
    """
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook, record_timing=False, coalesce_streams=True, resources=resources
    )
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    quiet = "ignore:IProgress"  # a warning of tqdm without its widgets
    client.execute(env={**os.environ, "PATH": programs, "PYTHONWARNINGS": quiet})
    notebook.metadata["language_info"] = {"name": "python"}  # without its version
    return notebook


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or sorted(NOTEBOOKS.glob("*.ipynb"))):
        with TemporaryDirectory() as folder:
            nbformat.write(executed(nbformat.read(path, 4), Path(folder)), path)
            shutil.copy(Path(folder) / f"{path.stem}.png", path.parent)
        print(path)
