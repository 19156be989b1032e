"""Cubes whose truth is known, to see what an estimate or an interval is worth."""

from __future__ import annotations

from .fixed import expected_maximum as expected_maximum
from .fixed import simulate_cube as simulate_cube
from .gaussian import separate_gaussian as separate_gaussian
from .ripley import ripley_mixture as ripley_mixture
from .study import coverage as coverage
