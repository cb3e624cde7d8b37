"""Digests of GPU memory, begun on the calling thread's current stream and read back late.

torch and Triton are the program's own; they are imported where the first digest is begun. Nothing
here waits for the device before somebody asks for the digests.
"""

import threading
from collections import defaultdict, deque
from contextlib import nullcontext, suppress
from functools import cache
from typing import Any, Final

import numpy as np

from kvlint.runtime_checks.digests.host import UnreadableError
from kvlint.runtime_checks.digests.launches import (
    LARGE,
    MIDDLE,
    MOST_PROGRAMS,
    SMALL,
    Form,
    Launch,
    launch_of,
)
from kvlint.runtime_checks.digests.pages import Pages, pages_at
from kvlint.runtime_checks.digests.reference import Digests

_LEAST: Final = 1024
_DIRECT: Final = 1 << 14


class Workspace:
    """Memory that one call at a time uses, so that none allocates: kept until what was begun with
    it is done.

    capacity  of the table, and of the digests, in numbers of 64 bits
    """

    def __init__(self, torch: Any, device: Any, capacities: tuple[int, int]) -> None:
        on_gpu = device.type == "cuda"
        self.device, self.capacities = device, capacities
        table, found = capacities
        self.staged = torch.empty(table, dtype=torch.int64, pin_memory=on_gpu)
        self.numbers = self.staged.numpy()
        self.table = torch.empty(table, dtype=torch.int64, device=device)
        self.found = torch.empty(found, dtype=torch.int64, device=device)
        self.result = torch.empty(found, dtype=torch.int64, pin_memory=on_gpu)
        self.digests = self.result.numpy().view(np.uint64)
        # A device writes a few numbers into pinned memory faster than a copy is asked for.
        self.direct = on_gpu and found <= _DIRECT
        self.done = torch.cuda.Event() if on_gpu else None

    @property
    def idle(self) -> bool:
        return self.done is None or bool(self.done.query())


class Workspaces:
    """Those that nobody uses, by device and capacities."""

    def __init__(self) -> None:
        self._idle: defaultdict[Any, deque[Workspace]] = defaultdict(deque)

    def take(self, torch: Any, device: Any, launch: Launch, lanes: int) -> Workspace:
        capacities = _rounded(launch.size), _rounded(launch.pages * lanes)
        known = self._idle[device, capacities]
        try:
            workspace = known.popleft()
        except IndexError:
            return Workspace(torch, device, capacities)
        # A query may be refused while another thread captures a graph.
        with suppress(RuntimeError):
            if workspace.idle:
                return workspace
        # What was begun with it was never asked for, and may still be under way.
        known.append(workspace)
        return Workspace(torch, device, capacities)

    def give_back(self, workspace: Workspace) -> None:
        """Never waits: destructors call it."""
        self._idle[workspace.device, workspace.capacities].append(workspace)


def _rounded(count: int) -> int:
    return max(_LEAST, 1 << (count - 1).bit_length())


_WORKSPACES: Final = Workspaces()
_COMPILED: Final[dict[object, Any]] = {}


class OnDevice:
    """Digests that a device is working on."""

    def __init__(self, workspace: Workspace, pages: Pages, lanes: int) -> None:
        self._workspace: Workspace | None = workspace
        self._pages, self._lanes = pages, lanes
        self._found: Digests | None = None
        self._lock = threading.Lock()

    def ready(self) -> bool:
        workspace = self._workspace
        if workspace is None or workspace.done is None:
            return True
        # A query would end the capture of a CUDA graph.
        return not _capturing(_torch()) and workspace.idle

    def digests(self) -> Digests:
        with self._lock:
            if self._found is None:
                self._found = self._read()
        return self._found

    def _read(self) -> Digests:
        workspace = self._workspace
        assert workspace is not None
        if workspace.done is not None:
            try:
                workspace.done.synchronize()
            except RuntimeError as error:
                raise UnreadableError(f"the device failed: {_first_line(error)}") from error
        count = len(self._pages)
        lanes = workspace.digests[: count * self._lanes].reshape(self._lanes, count)
        found = [self._pages.ordered(lane).copy() for lane in lanes]
        self._workspace = None
        _WORKSPACES.give_back(workspace)
        return found[0] if self._lanes == 1 else np.stack(found, axis=1)

    def __del__(self) -> None:
        if self._workspace is not None:
            _WORKSPACES.give_back(self._workspace)


def start(
    pages: Pages, seed: int, lanes: int = 1, *, device: str = "cuda", form: Form | None = None
) -> OnDevice:
    """Begin digests of pages of `pages.device`. Raises `UnreadableError` where torch or Triton is
    missing, and while the current stream is being captured into a CUDA graph. `device` "cpu", for
    host memory, needs Triton's interpreter."""
    torch, where = _torch(), _device(device, pages.device)
    launch = launch_of(pages, seed, lanes, form)
    if launch.programs > MOST_PROGRAMS:
        raise UnreadableError(f"{launch.pages} pages are too many for one launch")
    if where.type == "cpu":
        return OnDevice(_launched(torch, where, launch, lanes), pages, lanes)
    there = (
        nullcontext() if torch.cuda.current_device() == where.index else torch.cuda.device(where)
    )
    with there:
        if _capturing(torch):
            raise UnreadableError("no digests while a CUDA graph is captured on the current stream")
        return OnDevice(_launched(torch, where, launch, lanes), pages, lanes)


def prepare(index: int = 0, seed: int = 0, lanes: int = 1) -> None:
    """Compile and load what aligned pages need, which the first digest would otherwise wait for:
    seconds a form where Triton's cache has none of them. This waits for the device; not while
    a CUDA graph is captured. Raises `UnreadableError`."""
    torch, where = _torch(), _device("cuda", index)
    with torch.cuda.device(where):
        memory = torch.zeros(16, dtype=torch.uint8, device=where)
        page = pages_at(np.array([memory.data_ptr()], np.uint64), np.array([16]), "VRAM", index)
        for form in (SMALL, MIDDLE, LARGE):
            start(page, seed, lanes, form=form).digests()


def _launched(torch: Any, device: Any, launch: Launch, lanes: int) -> Workspace:
    workspace = _WORKSPACES.take(torch, device, launch, lanes)
    launch.write(workspace.numbers)
    workspace.table.copy_(workspace.staged, non_blocking=True)
    direct = workspace.direct and not launch.split
    if launch.split:
        workspace.found.zero_()
    if launch.programs:
        _run(workspace, workspace.result if direct else workspace.found, launch, lanes)
    if not direct:
        workspace.result.copy_(workspace.found, non_blocking=True)
    if workspace.done is not None:
        workspace.done.record()
    return workspace


def _run(workspace: Workspace, found: Any, launch: Launch, lanes: int) -> None:
    form = launch.form
    key = workspace.device, form, launch.align, lanes, launch.split
    arguments = (
        workspace.table,
        found,
        launch.tiles,
        form.slots,
        form.words,
        launch.align,
        lanes,
        launch.split,
        form.stages,
    )
    # Triton looks at every argument anew to find what it compiled; this is half the time.
    compiled = _COMPILED.get(key)
    if compiled is not None:
        compiled[launch.programs, 1, 1](*arguments)
        return
    compiled = _kernel()[launch.programs, 1, 1](*arguments, num_warps=form.warps)
    if compiled is not None:
        _COMPILED[key] = compiled


def _capturing(torch: Any) -> bool:
    return bool(torch.cuda.is_current_stream_capturing())


@cache
def _device(kind: str, index: int) -> Any:
    torch = _torch()
    if kind == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        raise UnreadableError(f"no digests of GPU memory: torch has no CUDA device {index}")
    return torch.device(kind, index)


@cache
def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise UnreadableError("no digests of GPU memory: torch is missing") from error
    return torch


@cache
def _kernel() -> Any:
    try:
        from kvlint.runtime_checks.digests.kernels import digest_pages
    except ImportError as error:
        raise UnreadableError("no digests of GPU memory: Triton is missing") from error
    return digest_pages


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
