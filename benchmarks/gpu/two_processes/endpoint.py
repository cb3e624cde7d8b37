"""The pools and the agent of one side of the transfers between two processes."""

import gc
import os
import platform
import time
from contextlib import suppress
from importlib import metadata
from typing import Any

import numpy as np
import torch
from nixl._api import nixl_agent, nixl_agent_config
from two_processes.workers import Link, LostError

from kvlint.runtime_checks import Violation, arm, arming, disarm, guard_pool, status

WAIT = 25.0
"""Seconds after which what should have come is given up."""
PAUSE = 0.0002
KEY = "KVLINT_DIGEST_KEY"


class Endpoint:
    """
    pools  by name, a tensor (slots, bytes) a region
    lists  prepared of each pool, local and remote
    """

    def __init__(self, name: str, number: int, link: Link) -> None:
        self.name, self.number, self.link = name, number, link
        self.kind, self.device = "DRAM", 0
        self.pools: dict[str, list[torch.Tensor]] = {}
        self.names: dict[str, list[str]] = {}
        self.lists: dict[str, tuple[Any, Any]] = {}
        self.agent: Any = None

    # What is there.

    def machine(self) -> dict[str, Any]:
        """What this process has, and why it has no GPU memory for NIXL."""
        found: dict[str, Any] = {"python": platform.python_version(), "torch": torch.__version__}
        for name in ("kvlint-geometry", "nixl", "nixl-cu13", "numpy", "triton"):
            with suppress(metadata.PackageNotFoundError):
                found[name] = metadata.version(name)
        found["devices"] = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not found["devices"]:
            return found | {"why": "no CUDA here"}
        self.device = self.number % found["devices"]
        torch.cuda.set_device(self.device)
        found["device"] = f"cuda:{self.device} {torch.cuda.get_device_name(self.device)}"
        if found["devices"] > 1:
            found["peer"] = torch.cuda.can_device_access_peer(self.device, 1 - self.device)
        try:
            probe = torch.zeros(4096, dtype=torch.uint8, device=f"cuda:{self.device}")
            agent = nixl_agent("probe", nixl_agent_config(backends=["UCX"]))
            agent.deregister_memory(agent.register_memory([probe]))
        except Exception as error:
            return found | {"why": f"NIXL takes no GPU memory: {type(error).__name__}: {error}"}
        return found | {"why": ""}

    def allot(
        self, kind: str, shapes: dict[str, list[tuple[int, int]]], names: dict[str, list[str]]
    ) -> None:
        """Pools of these (slots, bytes); prefill's are full, decode's empty."""
        self.kind, self.names = kind, names
        where = f"cuda:{self.device}" if kind == "VRAM" else "cpu"
        torch.manual_seed(7)
        for pool, regions in shapes.items():
            made = [torch.zeros(shape, dtype=torch.uint8, device=where) for shape in regions]
            if self.name == "prefill":
                for region in made:
                    region.random_(1, 255)
            self.pools[pool] = made
        self.sync()

    def sync(self) -> None:
        if self.kind == "VRAM":
            torch.cuda.synchronize()

    # From arming to disarming.

    def begin(self, mode: str, number: int, thread: bool, key: str) -> tuple[str, bytes, Any]:
        """Arm and make an agent. Gives back its name, its metadata and rows of each pool."""
        os.environ[KEY] = key
        if mode != "off":
            arm(mode)
        for pool, regions in self.pools.items():
            for part in dict.fromkeys(name.split()[-1] for name in self.names[pool]):
                named = zip(self.names[pool], regions, strict=True)
                guard_pool({n: one for n, one in named if n.split()[-1] == part}, name=part)
        how = nixl_agent_config(backends=["UCX"], enable_prog_thread=thread)
        self.agent = nixl_agent(f"{self.name}-{number}", how)
        every = [region for regions in self.pools.values() for region in regions]
        device = self.device if self.kind == "VRAM" else 0
        pieces = [(one.data_ptr(), one.nbytes, device, "") for one in every]
        self.agent.register_memory(pieces, self.kind)
        self.exchanged = self.exchange()
        rows = {pool: self.rows(pool) for pool in self.pools}
        return self.agent.name, self.agent.get_agent_metadata(), rows

    def rows(self, pool: str) -> np.ndarray:
        """Nx5: (address, bytes, device, stride, count), one row a region."""
        device = self.device if self.kind == "VRAM" else 0
        return np.array(
            [(r.data_ptr(), r.shape[1], device, r.shape[1], len(r)) for r in self.pools[pool]],
            np.uint64,
        )

    def meet(self, name: str, described: bytes, rows: dict[str, np.ndarray]) -> None:
        """Prepare lists of both sides."""
        self.agent.add_remote_agent(described)
        for pool, theirs in rows.items():
            local = self.agent.prep_xfer_dlist("", self.rows(pool), self.kind)
            self.lists[pool] = local, self.agent.prep_xfer_dlist(name, theirs, self.kind)

    def end(self) -> dict[str, Any]:
        """Disarm; what was found since `begin`."""
        self.settle()
        told = dict(status())
        told["found"] = self.found()
        now = self.exchange()
        told["exchange"] = {what: now[what] - self.exchanged.get(what, 0) for what in now}
        disarm()
        self.agent = None
        self.lists.clear()
        gc.collect()
        return told

    def found(self) -> list[dict[str, Any]]:
        """What was told: check, code, at which call or stage, where, and the message."""
        if arming._armed is None:
            return []
        records: list[Any] = list(arming._armed.policy.violations)
        return [
            {
                "check": record["check"],
                "code": record["code"],
                "at": record["sites"][-1]["call"] if record["sites"] else "notification",
                "region": record["region_name"] or record["region"],
                "slot": record["slot"],
                "byte": record["byte"],
                "message": record["message"],
            }
            for record in records
        ]

    def exchange(self) -> dict[str, int]:
        """Messages and records; they are counted as long as the process lives."""
        counts: Any = status().get("exchange", {})
        return dict(counts)

    @property
    def late(self) -> bool:
        """Whether digests that were begun are still to be read."""
        armed = arming._armed
        return armed is not None and armed.settings.mode.reads and not armed.digests.late.empty

    def counted(self) -> int:
        """Transfers that were compared here."""
        armed = arming._armed
        return 0 if armed is None else armed.digests.counts["transfers compared"]

    def reads(self) -> bool:
        return arming._armed is not None and arming._armed.settings.mode.reads

    def settle(self, compared: int = 0, seconds: float = WAIT) -> None:
        """What was begun is told, and `compared` transfers are, or the time is over."""
        self.sync()
        end = time.monotonic() + seconds
        while True:
            with suppress(Violation):
                self.agent.get_new_notifs()
            if not self.late and self.counted() >= compared:
                return
            if time.monotonic() > end:
                return
            time.sleep(PAUSE)

    # Transfers.

    def indices(self, pool: str, slots: np.ndarray, stride: int | None = None) -> np.ndarray:
        """Of these slots in every region, region after region.

        stride  descriptors from region to region, where that is thought to be one number
        """
        counts = [len(region) for region in self.pools[pool]]
        starts = np.cumsum([0, *counts[:-1]]) if stride is None else np.arange(len(counts)) * stride
        return (starts[:, None] + slots).ravel().astype(np.int32)

    def make(
        self, operation: str, pool: str, ours: np.ndarray, theirs: np.ndarray, text: bytes
    ) -> Any:
        """Both sides have the same regions, so indices of the one are those of the other."""
        local, remote = self.lists[pool]
        here, there = self.indices(pool, ours), self.indices(pool, theirs)
        return self.agent.make_prepped_xfer(operation, local, here, remote, there, text)

    def finish(self, handle: Any) -> None:
        end = time.monotonic() + WAIT
        while self.agent.check_xfer_state(handle) != "DONE":
            if time.monotonic() > end:
                raise LostError(f"a transfer is not over after {WAIT:.0f} s")
