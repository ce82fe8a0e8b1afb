"""The question whether longitudes close around the globe, with answers that work."""

from __future__ import annotations

from contextlib import suppress

from nfsgeo.data.conventions import angle_of
from nfsgeo.data.fields import Fields
from nfsgeo.errors import UserError, option
from nfsgeo.geometry import Domain

__all__ = ["check_longitudes", "globe_of"]

GLOBE = 360.0  # degrees


def globe_of(fields: Fields) -> Domain:
    """The sphere, which begins where the longitudes of a grid do."""
    east = fields.axes is not None and fields.axes[0][0] >= 0
    return Domain.sphere(0.0 if east else -GLOBE / 2)


def check_longitudes(fields: Fields) -> None:
    """Check that longitudes over half of the globe are known to close, or not to.

    Raises:
        UserError: They are not. The message gives the domains that the fields fit.
    """
    x = fields.dataset[fields.space[0]].attrs
    if fields.domain_is_known or x.get("standard_name") != "longitude":
        return
    low, high = fields.extent
    degrees = float(high[0] - low[0])
    if degrees <= GLOBE / 2:
        return
    answers, dim = list[str](), len(fields.space)
    if dim == 2 and _fits(fields, globe_of(fields)):
        answers.append(option("sphere"))
    ends = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    others = ends[1:]
    if others and max(map(abs, others[0])) <= GLOBE / 4:
        unit = str(fields.dataset[fields.space[1]].attrs.get("units", ""))
        if not unit or angle_of(unit) == "deg":
            others[0] = -GLOBE / 4, GLOBE / 4
    for west in (0.0 if low[0] >= 0 else -GLOBE / 2, ends[0][0]):
        whole = [(west, west + GLOBE), *others]
        lower, upper = zip(*whole, strict=True)
        if _fits(fields, Domain(lower, upper, (True,) + (False,) * (dim - 1))):
            first, *rest = map(_text, whole)
            answers.append(option("axis", f"{first}:periodic", *rest))
            break
    open_ends = option("axis", *map(_text, ends))
    answers.append("if they do not close, " * bool(answers) + open_ends)
    raise UserError(
        f"{fields.path} with longitudes over {degrees:g} degrees",
        "to be told whether they close around the globe",
        f"give the domain: {', or '.join(answers)}",
    )


def _fits(fields: Fields, domain: Domain) -> bool:
    with suppress(UserError):
        fields.with_domain(domain)
        return True
    return False


def _text(ends: tuple[float, float]) -> str:
    """The ends of an axis, in as many digits as they need."""
    return ":".join(f"{v:g}" if float(f"{v:g}") == v else repr(v) for v in ends)
