"""Threads and progress: never more threads than the caller allows, and a bar for long calls."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cvstats._check import InputError

LIMITS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
_lock = threading.Lock()
_alone = threading.local()
_running = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep matrix products (and our own threads) to one thread each while blocks run side by side.

    Without threadpoolctl the caller's settings stay; dask's own worker processes start with one thread anyway.
    """
    global _running, _limit
    with _lock:
        _running += 1
        if _running == 1:
            controller = _controller()
            _limit = controller.limit(limits=1, user_api="blas") if controller is not None else None
    _alone.yes = True
    try:
        yield
    finally:
        _alone.yes = False
        with _lock:
            _running -= 1
            if _running == 0 and _limit is not None:
                _limit.restore_original_limits()
                _limit = None


def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    return ThreadpoolController()


def thread_count() -> int:
    """Return how many threads a kernel may use: as many as the caller lets matrix products use."""
    if getattr(_alone, "yes", False):
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = [int(os.environ[name]) for name in LIMITS if os.environ.get(name, "").isdigit()]
    if "threadpoolctl" in sys.modules:  # the caller may have set limits with it
        info = sys.modules["threadpoolctl"].threadpool_info()
        given += [part["num_threads"] for part in info if part.get("user_api") == "blas"]
    return max(1, min([cores, *given]))


@contextmanager
def ticker(text: str, total: int) -> Iterator[Callable[..., Any]]:
    """Yield a function that returns its argument and moves a progress bar by one (or by its second argument)."""
    if not text:
        yield lambda value, _=1: value
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise InputError("`progress=True` needs the package tqdm; install it, or leave `progress` out.") from None
    with tqdm(total=total, desc=text, leave=False) as bar:

        def tick(value: Any, steps: int = 1) -> Any:
            bar.update(steps)
            return value

        yield tick
