"""The same functions, compiled by numba: optional, used when installed and worth their start-up."""
