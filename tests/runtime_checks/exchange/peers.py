"""Two processes with a channel, and an agent without the key that writes to the mailbox of one.

Run as a program, since UCX takes its transports from the environment: what each scenario has seen
is told as JSON.
"""

import json
import multiprocessing
import time
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np
from nixl import _api
from nixl._bindings import NIXL_IN_PROG

from kvlint.runtime_checks.exchange.channel import Channel
from kvlint.runtime_checks.exchange.messages import Announced, Message, Stage
from kvlint.runtime_checks.exchange.records import BODY, RECORD, STAMP
from kvlint.runtime_checks.exchange.region import CELLS, CELLS_AT, SIZE, address_of
from tests.runtime_checks.exchange.letters import announced, digested, told_rows
from tests.runtime_checks.hosts import Host, regions

KEY = b"of this run"
SECONDS = 30.0


def fingerprint(message: Message) -> tuple[str, str]:
    """The transfer and the entries, short enough to be compared between processes."""
    said = told_rows(message.rows) if isinstance(message, Announced) else message.tags.tolist()
    return message.transfer.hex(), blake2b(repr(said).encode(), digest_size=8).hexdigest()


def serve(pipe: Any) -> None:
    """The other process: receives when it is told to, and sleeps else."""
    host = Host("decode", regions([8]), thread=False)
    host.register()
    channel = Channel(host.agent, _api.nixlBind, KEY)
    line = channel.open()
    pipe.send((host.name, host.agent.get_agent_metadata(), line))
    notified: list[Any] = []
    while (asked := pipe.recv()) is not None:
        count, seconds = asked
        found: list[Message] = []
        end = time.monotonic() + seconds
        while len(found) < count and time.monotonic() < end:
            found += channel.receive()
            notified += [one for one in (host.agent.get_new_notifs(),) if one]
        pipe.send(([fingerprint(one) for one in found], dict(channel.counts), notified))


class Pair:
    """This process's channel, the other process, and somebody who only has its metadata."""

    def __init__(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        self.host = Host("prefill", regions([8]), thread=False)
        self.host.register()
        self.channel = Channel(self.host.agent, _api.nixlBind, KEY)
        self.channel.open()
        self.name, metadata, line = self.pipe.recv()
        assert line is None
        self.host.agent.add_remote_agent(metadata)
        self.memory = np.zeros(SIZE, np.uint8)
        self.hostile = Host("hostile", [self.memory.reshape(1, SIZE)], thread=False)
        self.hostile.register()
        self.hostile.agent.add_remote_agent(metadata)
        # As anybody can tell from the metadata.
        key = blake2b(KEY, digest_size=32, person=b"kvlint run").digest()
        self.address = address_of(key)
        self._sent = 0
        # What the other process has received while it helped the hostile agent on.
        self.found: list[Any] = []

    def send(self, count: int) -> list[tuple[str, str]]:
        """A message of rows or one of tags, as a channel sends it."""
        self._sent += 1
        transfer = self._sent.to_bytes(16)
        if self._sent % 2:
            message: Message = announced(count, transfer=self._sent)
            sent = self.channel.announce(self.name, transfer, "WRITE", message.rows)
        else:
            message = digested(count, transfer=self._sent)
            sent = self.channel.digested(self.name, transfer, Stage.POST, message.tags)
        return [fingerprint(message)] if sent else []

    def ask(self, count: int, seconds: float = SECONDS) -> tuple[Any, Any, Any]:
        """What the other process receives meanwhile."""
        self.pipe.send((count, seconds))
        end = time.monotonic() + seconds + SECONDS
        while not self.pipe.poll():
            self.channel.receive()
            self.host.agent.get_new_notifs()
            self.hostile.agent.get_new_notifs()
            assert time.monotonic() < end
        found, counts, notified = self.pipe.recv()
        return [tuple(one) for one in found], counts, notified

    def settled(self) -> dict[str, int]:
        """Its counts, once nothing is tried again; what came meanwhile is found."""
        last: dict[str, int] = {}
        while True:
            found, counts, _ = self.ask(1 << 20, 0.5)
            self.found += found
            if counts == last:
                return counts
            last = counts

    def reach(self, operation: str, at: int, length: int, mine: int = 0) -> None:
        """The hostile agent writes, or reads, the region with NIXL."""
        agent = self.hostile.agent
        ours = agent.get_xfer_descs([(self.memory.ctypes.data + mine, length, 0)], "DRAM")
        theirs = agent.get_xfer_descs([(self.address + at, length, 0)], "DRAM")
        handle = agent.initialize_xfer(operation, ours, theirs, self.name)
        agent.transfer(handle)
        # The other process gets on only when it is asked.
        self.pipe.send((1 << 20, 0.05))
        while agent.agent.getXferStatus(handle._handle) == NIXL_IN_PROG:
            if self.pipe.poll():
                self.found += self.pipe.recv()[0]
                self.pipe.send((1 << 20, 0.05))
        self.found += self.pipe.recv()[0]
        handle.release()


def right(pair: Pair) -> dict[str, Any]:
    sent = [one for count in (1, 500, 7808, 7808) for one in pair.send(count)]
    found, counts, notified = pair.ask(4)
    return {"same": sorted(found) == sorted(sent), "counts": counts, "notified": notified}


def noise(pair: Pair) -> dict[str, Any]:
    """The whole region is overwritten with noise, then messages come."""
    pair.memory[:] = np.random.default_rng(0).integers(0, 256, SIZE, np.uint8)
    pair.reach("WRITE", 0, SIZE)
    sent = [one for count in (1, 7808) for one in pair.send(count)]
    found, _, _ = pair.ask(2)
    counts = pair.settled()
    return {"same": sorted(found) == sorted(sent), "counts": counts}


def replay(pair: Pair) -> dict[str, Any]:
    """Records that were read from the region are written there again, one cell further."""
    pair.send(500)
    assert len(pair.ask(1)[0]) == 1
    length = CELLS * RECORD
    pair.reach("READ", CELLS_AT, length)
    cells = pair.memory[:length].reshape(CELLS, RECORD)
    stamps = cells[:, BODY : BODY + STAMP].tobytes()
    pair.reach("WRITE", CELLS_AT + RECORD, length - RECORD)
    pair.memory[: len(stamps)] = np.frombuffer(stamps, np.uint8)
    pair.reach("WRITE", STAMP, len(stamps) - STAMP)
    counts = pair.settled()
    return {"found": pair.found, "counts": counts}


def asleep(pair: Pair) -> dict[str, Any]:
    """The other process sleeps: by TCP nothing arrives. Nobody waits for it."""
    sent: list[tuple[str, str]] = []
    for _ in range(100):
        sent += pair.send(7808)
    dropped = pair.channel.counts.get("dropped.full", 0)
    found, counts, _ = pair.ask(len(sent))
    places = pair.channel._mailbox.staging
    after = len(pair.send(7808))
    again = len(pair.ask(1)[0])
    for _ in range(1000):
        pair.channel.receive()
    return {
        "sent": len(sent),
        "dropped": dropped,
        "same": sorted(found) == sorted(sent),
        "counts": counts,
        "afterwards": [after, again],
        "in use": sum(places._places) - sum(count for _, _, count in places._returned),
    }


def flood(pair: Pair) -> dict[str, Any]:
    """Noise is written all the time while messages come: what arrives is what was sent."""
    pair.memory[:] = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)
    sent = []
    pair.found = []
    for at in range(20):
        sent += pair.send(500)
        pair.reach("WRITE", CELLS_AT + at * 1000, 64 * RECORD, at * 8)
        pair.reach("WRITE", at * 64, 64 * STAMP, at * 8)
    counts = pair.settled()
    found = [tuple(one) for one in pair.found]
    return {
        "found": len(found),
        "made up": len(set(found) - set(sent)),
        "twice": len(found) - len(set(found)),
        "counts": counts,
    }


def killed(pair: Pair) -> dict[str, Any]:
    """The other process is gone in the middle: no call raises or waits."""
    pair.process.kill()
    pair.process.join()
    slowest, end = 0.0, time.monotonic() + 5
    while time.monotonic() < end and not pair.channel.counts.get("dropped.unreachable"):
        began = time.monotonic()
        pair.send(500)
        slowest = max(slowest, time.monotonic() - began)
        pair.channel.receive()
    return {"counts": dict(pair.channel.counts), "slowest": slowest}


SCENARIOS: list[Callable[[Pair], dict[str, Any]]] = [right, noise, replay, asleep, flood, killed]


def main() -> None:
    pair = Pair()
    print(json.dumps({play.__name__: play(pair) for play in SCENARIOS}))


if __name__ == "__main__":
    main()
