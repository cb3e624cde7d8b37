"""The front: HTTP on the loopback address, one request handed to the two processes at a time."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

MOST_BYTES = 8192


class Router:
    """Gives each request a room, and waits for the answer."""

    def __init__(self, prefill: Connection, decode: Connection) -> None:
        self.prefill, self.decode = prefill, decode
        self.room = 0
        self.lock = threading.Lock()

    def ready(self) -> None:
        """Wait for both processes. Raises EOFError where one has ended."""
        self.prefill.recv()
        self.decode.recv()

    def close(self) -> None:
        self.prefill.close()
        self.decode.close()

    def generate(self, prompt: str) -> tuple[int, str]:
        """HTTP status, and the answer or one line on what went wrong."""
        with self.lock:
            self.room += 1
            try:
                self.prefill.send((self.room, prompt))
                self.decode.send((self.room, prompt))
                good, text = self.decode.recv()
            except (EOFError, OSError):
                return 503, "the server ends"
            return (200 if good else 500), text


def listen(router: Router, port: int) -> ThreadingHTTPServer:
    """POST /generate takes a prompt and gives the answer; GET /metrics is for Prometheus."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            if self.path != "/generate":
                self.reply(404, "not here; POST /generate")
            elif not 0 < length <= MOST_BYTES:
                self.reply(400, f"a prompt has 1 to {MOST_BYTES} bytes")
            else:
                self.reply(*router.generate(self.rfile.read(length).decode(errors="replace")))

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self.reply(200, metrics())
            else:
                self.reply(404, "not here; GET /metrics")

        def reply(self, status: int, text: str) -> None:
            body = f"{text.rstrip()}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the operator's terminal is for what matters."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def metrics() -> str:
    """The counters of all processes, from the files that they leave."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return generate_latest(registry).decode()
