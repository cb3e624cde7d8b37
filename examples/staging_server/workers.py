"""The two processes. A request is a room: decode offers pages, prefill fills them."""

import signal
from collections.abc import Callable
from multiprocessing.connection import Connection

from model import answer, computed, pages_of, tokenize
from pools import KVPool, PageAllocator
from prometheus_client import Counter
from transfer import KVManager, KVSender

from kvlint.runtime_checks import guard_pool


def prefill(front: Connection, decode: Connection, broken: str | None) -> None:
    """Compute each prompt's cache and write it to the pages that decode has offered."""
    pool, manager, allocator = _started("prefill", broken)
    sender = KVSender(manager, decode.recv())
    front.send("ready")

    def serve(room: int, prompt: str) -> None:
        dst_pages = decode.recv()
        if dst_pages is None:
            return
        src_pages = allocator.alloc(len(dst_pages))
        try:
            pool.write(src_pages, computed(tokenize(prompt)))
            sender.send(src_pages, dst_pages, room)
        except Exception as error:  # the request fails, the process lives on
            decode.send(f"{type(error).__name__}: {error}")
        finally:
            allocator.free(src_pages)

    _until_the_end(front, serve)


def decode(front: Connection, prefill: Connection, broken: str | None) -> None:
    """Wait for each prompt's cache and answer from what is in the pages."""
    pool, manager, allocator = _started("decode", broken)
    requests = Counter("staging_requests", "Requests that decode has ended.", ["result"])
    prefill.send(manager.info)
    front.send("ready")

    def serve(room: int, prompt: str) -> None:
        try:
            pages = allocator.alloc(pages_of(len(tokenize(prompt))))
        except RuntimeError as error:
            prefill.send(None)
            front.send((False, str(error)))
            return
        prefill.send(pages)
        while room not in manager.arrived():
            if prefill.poll(0.0005):
                requests.labels("failed").inc()
                front.send((False, prefill.recv()))
                break
        else:
            requests.labels("answered").inc()
            front.send((True, answer(pool.read(pages))))
        allocator.free(pages)

    _until_the_end(front, serve)


def _started(name: str, broken: str | None) -> tuple[KVPool, KVManager, PageAllocator]:
    # Signals may reach all processes of a group; when to end is said by the front.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pool = KVPool(broken)
    guard_pool(pool, said=pool.regions())
    return pool, KVManager(name, pool), PageAllocator(seed=len(name))


def _until_the_end(front: Connection, serve: Callable[[int, str], None]) -> None:
    """Requests one after the other, until the front has gone or the peer has."""
    try:
        while True:
            serve(*front.recv())
    except (EOFError, ConnectionError):
        return
