"""What people are told about a protocol, declared beside the protocol itself and read by tables, reports and help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import xarray as xr

    from cvstats.metrics import Metric

Function = TypeVar("Function", bound=Callable[..., object])


def always(cube: xr.DataArray, metric: Metric) -> str | None:
    """Apply to every cube."""
    return None


def needs_folds(cube: xr.DataArray, metric: Metric) -> str | None:
    """Apply where the folds are known."""
    if "fold" not in cube.coords:
        return "the folds were not saved"
    return "folds differ between configurations" if "configuration" in cube["fold"].dims else None


def needs_repeats(cube: xr.DataArray, metric: Metric) -> str | None:
    """Apply where cross-validation was repeated."""
    return None if cube.sizes.get("repeat", 1) > 1 else "it needs two repeats"


def needs_partners(cube: xr.DataArray, metric: Metric) -> str | None:
    """Apply where the classes were sampled, and divided into folds, separately."""
    return None if "partner" in cube.dims else "the classes were not sampled separately"


def needs_no_partners(cube: xr.DataArray, metric: Metric) -> str | None:
    """Apply to ordinary folds."""
    return "the classes were sampled separately" if "partner" in cube.dims else None


@dataclass(frozen=True)
class Protocol:
    """A protocol as people meet it: its name in tables, which samples choose and which judge, and where it applies."""

    words: str
    chooses: str
    judges: str
    remark: str = ""
    applies: Callable[[xr.DataArray, Metric], str | None] = field(default=always, kw_only=True)  # None, or why not


# by the value of the coordinate `method`; complete once every protocol is imported: see `cvstats.protocols.PROTOCOLS`
PROTOCOLS: dict[str, Protocol] = {}


def protocol(method: str, *said: str, **traits: Any) -> Callable[[Function], Function]:
    """Declare above a function what is said about its results, called `method`: what a `Protocol` takes."""
    PROTOCOLS[method] = Protocol(*said, **traits)
    return lambda function: function
