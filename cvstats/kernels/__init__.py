"""Scores of all configurations under many weights, in plain numpy: no labels, no xarray, no files."""
