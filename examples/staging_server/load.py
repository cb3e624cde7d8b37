"""Requests that end by themselves: how many answers are right, wrong, or failures.

python examples/staging_server/load.py http://127.0.0.1:PORT --requests 20
"""

import argparse
import random
import urllib.error
import urllib.request

from model import WORDS, expected


def ask(url: str, prompt: str) -> tuple[int, str]:
    """HTTP status, and what the server says."""
    request = urllib.request.Request(f"{url}/generate", prompt.encode(), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()


def prompts(count: int) -> list[str]:
    """One to six pages each, the same every time."""
    chance = random.Random(7)
    words = WORDS.split()
    return [" ".join(chance.choices(words, k=chance.randrange(10, 250))) for _ in range(count)]


def play(url: str, count: int) -> None:
    right, wrong, failed = 0, 0, 0
    for number, prompt in enumerate(prompts(count), 1):
        status, text = ask(url, prompt)
        if status != 200:
            failed += 1
            if failed == 1:
                print(f"request {number}: HTTP {status}: {text}")
        elif text == (wanted := expected(prompt)):
            right += 1
        else:
            wrong += 1
            if wrong == 1:
                print(f"request {number}: HTTP 200: {text!r}, right is {wanted!r}")
    print(f"{count} requests: {right} right, {wrong} wrong, {failed} failed", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url", help="what the server has printed")
    parser.add_argument("--requests", type=int, default=20)
    arguments = parser.parse_args()
    play(arguments.url.rstrip("/"), arguments.requests)


if __name__ == "__main__":
    main()
