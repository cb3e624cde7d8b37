"""A prefill and a decode process with real NIXL between them, in host memory, without a GPU.

python examples/staging_server/serve.py                          until SIGTERM or Ctrl-C
python examples/staging_server/serve.py --requests 20            asks itself, and ends
python examples/staging_server/serve.py --break pool-formula     or element-type
"""

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import load
from front import Router, listen

BREAKS = ("element-type", "pool-formula")
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    parser = argparse.ArgumentParser(description="A small prefill/decode server.")
    parser.add_argument("--break", dest="broken", choices=BREAKS, help="what goes wrong")
    parser.add_argument("--requests", type=int, metavar="N", help="ask N times, and end")
    parser.add_argument("--port", type=int, default=0, help="default: one that is free")
    arguments = parser.parse_args()
    for number in SIGNALS:
        signal.signal(number, end)
    try:
        with tempfile.TemporaryDirectory() as folder:
            # Before anybody imports prometheus_client: counters are those of all processes.
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
            processes, router = start(arguments.broken)
            try:
                return serve(processes, router, arguments.port, arguments.requests)
            finally:
                stop(processes, router)
    except KeyboardInterrupt:
        return 0


def end(*_: object) -> None:
    """The first signal ends the server; more of them do not disturb it in that."""
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    raise KeyboardInterrupt


def start(broken: str | None) -> tuple[list[BaseProcess], Router]:
    context = multiprocessing.get_context("spawn")
    to_prefill, of_prefill = context.Pipe()
    to_decode, of_decode = context.Pipe()
    prefill, decode = context.Pipe()
    processes: list[BaseProcess] = [
        context.Process(target=work, args=("prefill", of_prefill, prefill, broken)),
        context.Process(target=work, args=("decode", of_decode, decode, broken)),
    ]
    for process in processes:
        process.start()
    # Else nobody would notice that the other end is gone.
    for handed in (of_prefill, of_decode, prefill, decode):
        handed.close()
    return processes, Router(to_prefill, to_decode)


def work(name: str, front: Connection, peer: Connection, broken: str | None) -> None:
    import workers  # brings torch and NIXL, which the front does without

    getattr(workers, name)(front, peer, broken)


def serve(processes: list[BaseProcess], router: Router, port: int, requests: int | None) -> int:
    """Until a process ends, or the requests are through. The exit status."""
    try:
        router.ready()
        server = listen(router, port)
        url = f"http://127.0.0.1:{server.server_port}"
        print(f"serving on {url}", flush=True)
        if requests is not None:
            load.play(url, requests)
            return 0
        # Another thread may get the signal, which then wakes nobody here.
        while not wait([process.sentinel for process in processes], timeout=0.5):
            pass
    except EOFError:
        pass
    print("the server ends: one of its processes has ended", file=sys.stderr)
    for process in processes:
        process.join(1)
    return max(1, *(process.exitcode or 0 for process in processes))


def stop(processes: list[BaseProcess], router: Router) -> None:
    """The processes end when nobody is at the other end of their pipes."""
    router.close()
    for process in processes:
        process.join(10)
        if process.is_alive():
            process.kill()
            process.join()


if __name__ == "__main__":
    sys.exit(main())
