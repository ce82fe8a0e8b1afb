"""Names of roles, axes and columns, by which data are understood.

The name of a column tells whether it is a coordinate, the time or the sample. Columns
``a``, ``a_NAME`` and ``node_type`` are static inputs, ``forcing_NAME`` is known ahead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]

SPACE = "xyz"  # names of the axes
STATION = "station"  # coordinate of the names of points
# Names of columns that tell points apart, though they are numbers.
STATIONS = ("station", "station_id", "site", "site_id", "sensor", "id", "name", "code")
# Variables of a graph: its edges, their weights, numbers of edges of samples.
EDGES, EDGE_WEIGHT, EDGE_ROWS = "edges", "edge_weight", "row_size_edge"
UNDECIDED = "undecided"  # attribute: arrays at one time whose roles nobody chose
DERIVED = "derived"  # attribute in memory: an input computed from the mesh
NODE_TYPE = "node_type"  # an input of this name is a category
TIME_ZONE = "time_zone"  # attribute of times whose source tells a zone, "UTC"
FLAGS = ("flag_values", "flag_meanings")
FIELD, KNOWN, STATIC, INITIAL, PARAMETER = ROLES = (
    "field",  # to be predicted
    "known",  # in time: known ahead; of samples alone: an input of a model
    "static",  # an input that does not change in time
    "initial condition",  # kept with the data, no input
    "parameter",  # of samples alone, kept with the data
)
# Roles of variables that describe mesh, graph, obstacles and parts of the data.
STRUCTURE = ("cells", "edges", "facets", "rows", "part")

LENGTHS = re.compile(
    "[munpkcdµ]?m|(kilo|deci|centi|milli|micro|nano)?met(er|re)s?|in|ft|feet|mi"
)
# Units of length, angle and time.
AXIS_UNITS = re.compile(
    f"{LENGTHS.pattern}|deg|°|degrees?|degrees?_(east|north|[EN])|rad|radians?|"
    "[munµ]?s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|d|days?|weeks?|months?|"
    "yrs?|years?"
)
# Units of values: symbols with a prefix and an exponent, multiplied or divided. Symbols
# that are `SURE` are hardly those of quantities, unlike A, d, h, L, T, V and ubar.
NAMED = "mol|sr|Hz|Pa|lm|lx|Bq|Gy|Sv|bar|eV|Wh|cal|psu|atm|Torr"
CLEAR = "°[CF]?|deg([CFK]|rees?)?|days?|yr|years?|knots?|mph|psi|mmHg|dBZ?|%|‰|pp[mbt]|"
CLEAR += "percent|PSU"
SYMBOL = f"([munpkMGhdcµμ]|da)?(m|g|s|A|K|cd|rad|N|J|W|C|V|F|Ω|S|T|H|l|L|{NAMED})"
SYMBOL += f"|{CLEAR}|min|hr?|d|ft|kt|kn|ha"
SURE = re.compile(
    "-|K|m|s|[munkcµμ]m|[mµμ]s|[mkµμ]g|k[NJWV]|M[NJW]|m[KLVA]|"
    f"[mkMGhnµμ]?({NAMED})|{CLEAR}"
)
SIGNED = r"[-+−]?\d+"
RAISED = "[⁺⁻]?[⁰¹²³⁴-⁹]+"
EXPONENT = rf"(\^|\*\*)?{SIGNED}|{RAISED}|(\^|\*\*)[({{]?{SIGNED}([./]\d+)?[)}}]?"
IN_BRACKETS = re.compile(r"(.*?\S)\s*(?:\[([^][]*)\]|\(((?:[^()]|\([^()]*\))*)\))\s*")
UNITS = re.compile(
    f"-|(1|10\\^?-?\\d+|1e-?\\d+)?[ /*·.]?({SYMBOL})({EXPONENT})?"
    f"( ?[/*·. ] ?\\(?({SYMBOL})({EXPONENT})?\\)?)*"
)
# Units that in round brackets are more often short for minimum, or calibrated.
ABBREVIATIONS = ("min", "cal")
# A quantity divided by its unit (ISO 80000-1), such as ``T / K`` or ``u/(m/s)``.
QUOTIENT = re.compile(
    r"([^/]*[^/\s])(?:\s+/\s+|\s*/\s*(?=[\[(]))(?:\[([^][]+)\]|\((.+)\)|(.+?))\s*"
)
PAIRS = (("(", ")"), ("[", "]"))
FILE_LAYOUT = 4  # of nfsgeo's own files, their attribute `nfsgeo_layout`
AT_POINTS = (FIELD, KNOWN, STATIC, INITIAL)  # roles of what is at the points
NPZ_ABOUT = "nfsgeo/about"  # an array of an archive; no name of a field has a slash
VALID, GHOST = "vtkValidPointMask", "vtkGhostType"  # names that ParaView gives

FORCING = "forcing_"  # how names of forcings begin in formats that hold no roles
MARK = "a_"  # and those of static inputs
STAGGERED = ("", "_m", "_u", "_v")  # grids of WRF
LONGITUDE = ("lon", "long", "lng", "longitude", *(f"xlong{g}" for g in STAGGERED))
LATITUDE = ("lat", "latitude", *(f"xlat{g}" for g in STAGGERED))
# The names that a column may have that is a sample, a time or a coordinate, in any
# case, with a unit after them.
COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "sample": ("sample",),
    "time": ("t", "time", "times", "timestamp", "datetime", "date"),
    "x": ("x", *LONGITUDE, "easting"),
    "y": ("y", *LATITUDE, "northing"),
    "z": ("z",),
}
# Kinds of columns without a role: an input constant in time, a component, no variable.
KINDS = ("static", "field", "ignore")
MASK = "mask"  # and of one whose flags tell which values of others are missing
SHOWN = 3  # columns, in a message
UNIT = re.compile(r"\s*[\[(].*[\])]$|_(s|sec|seconds|min|h|hours|d|days|m|km|deg)$")


def role_of(name: str) -> str:
    """Return the role that a name tells, "" if none; ``T`` may be a temperature."""
    bare = bare_name(name)
    fits = (role for role, names in COLUMN_NAMES.items() if bare in names)
    return "" if bare == "t" and name.strip()[0] == "T" else next(fits, "")


def bare_name(name: str) -> str:
    """Return a name in lower case without its unit: ``Time [s]`` gives ``time``."""
    return UNIT.sub("", _quotient(name.strip()[-1000:])[0]).lower()


def _quotient(name: str) -> tuple[str, str]:
    """Split ``T / K`` or ``u/(m/s)`` into the quantity and its unit.

    The unit is empty, and the name whole, if it may be a ratio of two quantities: so
    are ``a/b``, ``p / T``, ``x / L`` and ``q/(A T)``, but ``t / h`` is a time.
    """
    match = QUOTIENT.fullmatch(name) if "/" in name else None
    if not match or any(match[1].count(a) != match[1].count(b) for a, b in PAIRS):
        return name, ""
    bare, *texts = match.groups()
    unit = next(filter(None, texts)).strip()
    role = role_of(bare)
    of_axis = AXIS_UNITS if role == "time" else LENGTHS
    if role in ("time", *SPACE) and of_axis.fullmatch(unit):
        return bare, unit
    letters, powers = re.subn(f"{SIGNED}|{RAISED}", " ", unit)
    symbols = filter(None, re.split(r"[\s/*·.^(){}]+", letters))
    sure = [SURE.fullmatch(symbol) is not None for symbol in symbols]
    enough = any(sure) if powers or "/" in unit else all(sure)
    return (bare, unit) if UNITS.fullmatch(unit) and enough else (name, "")


def field_name(name: str) -> tuple[str, str]:
    """Split the name of a column into the name of the field and its unit.

    ``u [m/s]`` gives ``u`` and ``m/s``, ``T (K)`` gives ``T`` and ``K``, and so does
    all that has a slash in brackets, since no name has one; ``u (mean)`` is a name, and
    so is ``T (min)``, a minimum, unlike ``T [min]``.
    ``z``, the name of an axis, gives ``z_field``.
    """
    name, unit = _quotient(name)
    match = None if unit else IN_BRACKETS.fullmatch(name)
    if match and not match[1].endswith("/"):
        inside = (match[2] or match[3] or "").strip()
        word = name[match.end(1)] == "(" and len(inside) == 1  # as in u(s)
        word |= match[3] is not None and inside in ABBREVIATIONS
        if "/" in inside or (UNITS.fullmatch(inside) and not word):
            name, unit = match[1], inside
    return "z_field" if name == "z" else name, unit


def axis_unit(text: str) -> str:
    """Return the unit of an axis in space or time, ``mm`` of ``x [mm]`` or of ``mm``.

    It is empty if the text tells none, as in ``time (UTC)``.
    """
    inside = re.fullmatch(r".*\S\s*[\[(](.*)[\])]", text)
    unit = _quotient(text)[1] or (inside[1] if inside else text).strip()
    return unit if AXIS_UNITS.fullmatch(unit) else ""


def counts_from_date(unit: object) -> bool:
    """Return whether a unit is one of dates, such as ``days since 1970-01-01``."""
    return "since" in str(unit).split()


def length_of(unit: str) -> str:
    """Return ``mm`` for ``mm`` and ``millimetres``, "" for what is no length."""
    if not LENGTHS.fullmatch(unit):
        return ""
    word = re.fullmatch("(kilo|deci|centi|milli|micro|nano)?met(er|re)s?", unit)
    short = f"{(word[1] or '')[:1]}m" if word else unit
    return "um" if short == "µm" or unit.startswith("micro") else short


def angle_of(unit: str) -> str:
    """Return ``deg`` for degrees, also of north, ``rad`` for radians, else ""."""
    match = re.match("(deg|°|rad)", unit)
    angle = match is not None and AXIS_UNITS.fullmatch(unit)
    return ("rad" if unit.startswith("rad") else "deg") if angle else ""


def is_static(name: str) -> bool:
    """Return whether a static input has the name: ``a``, ``a_NAME``, ``node_type``."""
    return name in ("a", NODE_TYPE) or name.startswith(MARK)


def listed(names: Sequence[str]) -> str:
    """Join the first of some names for a message."""
    return ", ".join(names[:SHOWN]) + ", ..." * (len(names) > SHOWN)


def is_large(dims: Any, attrs: Mapping[str, Any]) -> bool:
    """Return whether a variable is read and written sample by sample."""
    return attrs.get("role") in AT_POINTS or "obs" in dims
