"""Looks at each launch before it is made: once for the same arguments, then from memory."""

import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakSet

import numpy as np

from kvlint.runtime_checks.callers import Caller
from kvlint.runtime_checks.checks import LAUNCH_EXTENT, Breach
from kvlint.runtime_checks.digests.late import Late
from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.launches.budget import Budget
from kvlint.runtime_checks.launches.kernels import Kernel, Key
from kvlint.runtime_checks.launches.launch import Launch
from kvlint.runtime_checks.launches.registry import Registry
from kvlint.runtime_checks.launches.tables import Counted, Table
from kvlint.runtime_checks.policy import Policy, Site
from kvlint.runtime_checks.pools.watching import Pools
from kvlint.runtime_checks.settings import Mode
from kvlint.runtime_checks.stacks import Stack, here
from kvlint.runtime_checks.violations import Violation

CHECK: Final = "launches"
TABLES: Final = "launch tables"
# Of so many launches of a kernel one has the indices looked at that it loads, the first among them;
# and of the process's time that takes no more than such a share.
ONE_IN: Final = {Mode.LOG: 16, Mode.SAMPLE: 16, Mode.ASSERT: 16, Mode.PARANOID: 1}
SHARE: Final = {Mode.LOG: 0.002, Mode.SAMPLE: 0.002, Mode.ASSERT: 0.01, Mode.PARANOID: 1e9}
# Seconds, when the process ends.
PATIENCE: Final = 1.0


class Watch:
    """What a process's launches are held against."""

    def __init__(self, policy: Policy, pools: Pools) -> None:
        self._policy = policy
        self._registry = Registry(pools)
        self._one_in = ONE_IN[policy.mode]
        self._first = 1 % self._one_in
        self._budget = Budget(SHARE[policy.mode])
        self._met: WeakSet[Kernel] = WeakSet()
        self.start_afresh()

    def start_afresh(self) -> None:
        """As in a process that has asked its device for nothing: what a forked child needs."""
        self._late = Late()
        # Answers that are still to come, and were not dropped.
        self._looking = 0
        self._owed: Violation | None = None

    def meet(self, kernel: Kernel) -> Kernel:
        if not kernel.own:
            self._met.add(kernel)
        return kernel

    @property
    def counts(self) -> Mapping[str, int]:
        """Of kernels, each of its specialisations, and their launches."""
        met = list(self._met)
        return {
            "kernels": len(met),
            "launches": sum(kernel.launches for kernel in met),
            "not read": sum(bool(kernel.unread) for kernel in met),
            "undecided": sum(kernel.rules.undecided for kernel in met if kernel.rules),
        }

    def callers(self) -> list[Caller]:
        """The launches of each kernel, as calls of its function."""
        found: dict[tuple[str, object], Caller] = {}
        for kernel in list(self._met):
            called = f"launch of {kernel.name}"
            stack = Stack(()).after(kernel.function)
            caller = found.setdefault((called, stack.key), Caller(called, stack))
            caller.count += kernel.launches
        return list(found.values())

    def look(
        self, kernel: Kernel, grid: Any, arguments: Sequence[Any], stream: int | None = None
    ) -> None:
        """Before a launch. Raises `Violation` where the mode raises.

        stream  of a GPU, that it is launched on
        """
        if kernel.own or not self._policy.armed(CHECK):
            return
        # This is on the way of every launch: a context manager would be a tenth of its cost.
        try:
            key = kernel.key(self._registry.stamp(), grid, arguments)
            known = kernel.verdicts.get(key)
            kernel.launches += 1
            due = kernel.tables and kernel.launches % self._one_in == self._first
            if known == () and not due and not self._looking and kernel.compiled:
                return
            violation = self._looked(kernel, key, grid, arguments, stream)
        except Exception as error:
            self._policy.fault(CHECK, error)
            return
        if violation is not None:
            raise violation

    def _looked(
        self,
        kernel: Kernel,
        key: Key,
        grid: Any,
        arguments: Sequence[Any],
        stream: int | None,
    ) -> Violation | None:
        launch: Launch | None = None
        known = kernel.verdicts.get(key)
        if known is None:
            launch = kernel.launch(grid, arguments)
            known = self._verdict(kernel, launch)
            kernel.keep(key, known)
        violation = self._tell(known, kernel, _caller(kernel)) if known else None
        if violation is None and kernel.tables and self._is_due(kernel):
            begun = time.monotonic()
            seen = launch or kernel.launch(grid, arguments)
            self._look_up(kernel, seen, arguments, stream)
            self._budget.spend(time.monotonic() - begun)
        if self._looking:
            self._late.drain()
        if self._owed is not None:
            # What was found of an earlier launch, whose kernel has run since.
            violation, self._owed = self._owed, None
        return violation

    def _is_due(self, kernel: Kernel) -> bool:
        if not kernel.compiled:
            # The interpreter is slower than this by far.
            return True
        return kernel.launches % self._one_in == self._first and self._budget.allows()

    def _verdict(self, kernel: Kernel, launch: Launch) -> Sequence[Breach]:
        wrong = [breach for name in launch.memory if (breach := outside(launch, name))]
        reach = kernel.reach(launch)
        if wrong or kernel.rules is None or reach is None:
            return tuple(wrong)
        registry = self._registry
        registry.read()
        odd = any(
            registry.differs(memory.address, memory.element_size)
            for name in kernel.rules.picked
            if (memory := launch.memory.get(name)) is not None
        )
        if not odd and reach.inside(launch.memory):
            return ()
        return tuple(kernel.rules.breaches(launch, registry.region_of))

    def _tell(self, breaches: Sequence[Breach], kernel: Kernel, stack: Stack) -> Violation | None:
        found: Violation | None = None
        for breach in breaches:
            site = Site(f"launch of {kernel.name}", stack)
            violation = self._policy.judge(breach, [site], agent="")
            found = found or violation
        return found

    # Indices on the device.

    def _look_up(
        self, kernel: Kernel, launch: Launch, arguments: Sequence[Any], stream: int | None
    ) -> None:
        torch = sys.modules.get("torch")
        if torch is None or not self._policy.armed(TABLES):
            return
        with self._policy.contained(TABLES):
            tensors = kernel.tensors(arguments)
            if not all(_in_order(torch, tensor, stream) for tensor in tensors.values()):
                return
            stack = _caller(kernel)
            with torch.no_grad():
                for table in kernel.tables:
                    answers = table.count(torch, launch, tensors)
                    if answers is not None:
                        counted = _counted(torch, answers)
                        then = partial(self._answered, table, kernel, launch, stack)
                        if self._late.add([counted], then):
                            self._looking += 1

    def _answered(
        self, table: Table, kernel: Kernel, launch: Launch, stack: Stack, found: list[Digests]
    ) -> None:
        self._looking -= 1
        with self._policy.contained(TABLES):
            answers = found[0].view(np.int64).tolist()
            breach = table.told(answers, launch, self._registry.region_of)
            if breach is not None:
                violation = self._tell([breach], kernel, stack)
                self._owed = self._owed or violation

    def at_exit(self) -> None:
        """What the device has answered since the last launch, or answers soon: a device that hangs
        is not waited for."""
        end = time.monotonic() + PATIENCE
        self._late.drain()
        while self._looking and time.monotonic() < end:
            time.sleep(0.01)
            self._late.drain()


def _in_order(torch: Any, tensor: Any, stream: int | None) -> bool:
    """Whether what is asked of the tensor now is done right before the launch, and once: in a
    graph that is captured it would be done again and again, and nobody would ask what came out."""
    if not tensor.is_cuda:
        # What a device writes to pinned memory may not be there yet.
        return bool(tensor.is_cpu) and not tensor.is_pinned()
    if tensor.device.index != torch.cuda.current_device():
        return False
    current = torch.cuda.current_stream()
    return stream in (None, current.cuda_stream) and not torch.cuda.is_current_stream_capturing()


def _caller(kernel: Kernel) -> Stack:
    """Whose launch it is: the frames outside Triton, and the kernel's own function."""
    package = getattr(sys.modules.get("triton"), "__file__", None) or ""
    folder = package.removesuffix("__init__.py") or "?"
    outside = [f for f in here(1).frames if not f[0].co_filename.startswith(folder)]
    return Stack(tuple(outside)).after(kernel.function)


def _counted(torch: Any, answers: Any) -> Counted:
    if not answers.is_cuda:
        return Counted(answers, None)
    kept = torch.empty(answers.shape, dtype=answers.dtype, pin_memory=True)
    kept.copy_(answers, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    return Counted(kept, event)


def outside(launch: Launch, name: str) -> Breach | None:
    """A tensor that reaches out of its own storage, as one whose storage was made smaller does."""
    memory = launch.memory[name]
    steps = [(n - 1) * step for n, step in zip(memory.shape, memory.strides, strict=True)]
    if 0 in memory.shape:
        return None
    size = memory.element_size
    least = sum(step for step in steps if step < 0) * size
    past = (sum(step for step in steps if step > 0) + 1) * size
    if memory.before <= least and past <= memory.past:
        return None
    held = memory.end - memory.begin
    return Breach(
        LAUNCH_EXTENT,
        f"{launch.kernel}: {name} is a {memory.dtype} tensor of {memory.shape}, strides "
        f"{memory.strides}, that reaches to byte {past - memory.before} of its storage, which has "
        f"{held} bytes",
        {"bytes reached": past - memory.before, "bytes of the storage": held},
    )
