"""One self-contained page about a run."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping
from pathlib import Path

import jinja2
from PIL import Image

from nfsgeo.report.figures import run_pictures
from nfsgeo.report.films import frames_of
from nfsgeo.report.run_folder import RunFolder, read_run_folder
from nfsgeo.report.style import SECTIONS, Picture, as_source
from nfsgeo.report.tables import (
    component_tables,
    error_table,
    facts,
    settings_tables,
    unseen_table,
    verdict,
)
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_bytes
from nfsgeo.version import __version__

__all__ = ["HERE", "embedded", "template", "write_report"]

HERE = Path(__file__).parent
SCRIPT = (HERE / "report.js").read_text(encoding="utf-8")


def write_report(run_dir: Path) -> Path:
    """Writes ``figures/*.png`` and ``report.html`` into a run folder.

    Reads the files of the folder only, and leaves out what is not there. The page
    holds its pictures and style and loads nothing. Its one script moves the films of
    problems in time; all else can be read without it.

    Args:
        run_dir: A run folder.

    Returns:
        The path of the page.

    Raises:
        UserError: ``run_dir`` holds no run, or one of its files is damaged.
    """
    run = read_run_folder(Path(run_dir))
    pictures = [(picture, picture.png()) for picture in run_pictures(run)]
    paths = RunPaths(run.path)
    paths.figures.mkdir(exist_ok=True)
    for picture, png in pictures:
        write_bytes(paths.figures / f"{picture.name}.png", png)
    by_section: dict[str, list[dict[str, str]]] = {section: [] for section in SECTIONS}
    for picture, png in pictures:
        by_section[picture.section].append(embedded(picture, png))
    page = template("report.html.j2", HERE).render(
        title=_title(run),
        version=__version__,
        facts=facts(run.summary, steady=run.steady),
        errors=error_table(run.summary),
        components=component_tables(run.summary),
        pooled=run.summary.get("pooled"),
        verdict=verdict(run.summary),
        units=run.summary.get("units"),
        pictures=by_section,
        frames=frames_of(run.predictions),
        script=SCRIPT,
        script_hash=script_hash(),
        unseen=unseen_table(run),
        tables=list(settings_tables(run)),
    )
    write_bytes(paths.report, page.encode())
    return paths.report


def embedded(picture: Picture, png: bytes) -> dict[str, str]:
    """A picture as a page holds it: ``name``, ``caption`` and ``source``.

    Args:
        picture: What it shows.
        png: Its content, which the page has as WebP: a tenth of the size.
    """
    with Image.open(io.BytesIO(png)) as image:
        source = as_source(image.convert("RGB"))
    return {"name": picture.name, "caption": picture.caption, "source": source}


def script_hash() -> str:
    """By which the page's security policy knows its one script."""
    digest = hashlib.sha256(SCRIPT.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def template(name: str, *folders: Path) -> jinja2.Template:
    """A Jinja template that escapes what is filled in.

    Args:
        name: Name of its file.
        folders: Where the file and those that it includes are.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def _title(run: RunFolder) -> str:
    model = run.summary.get("model") or run.config.get("model") or run.path.name
    if isinstance(model, Mapping):
        model = model.get("name", run.path.name)
    about = run.summary.get("equation") or run.summary.get("data")
    return f"{model} on {Path(str(about)).name}" if about else str(model)
