"""Which requests are digested."""

from kvlint.runtime_checks.digests import requests
from kvlint.runtime_checks.digests.requests import knows, request_of
from kvlint.runtime_checks.digests.sampling import OF, sampled, seed_of

REQUESTS = [f"request {number}".encode() for number in range(32_000)]


def test_one_request_in_sixteen():
    seed = seed_of(b"a run")
    share = sum(sampled(request, seed) for request in REQUESTS) / len(REQUESTS)
    assert abs(share * OF - 1) < 0.1


def test_both_sides_choose_the_same_and_another_run_others():
    one, same, other = (
        [sampled(request, seed_of(shared)) for request in REQUESTS[:500]]
        for shared in (b"a run", b"a run", b"another")
    )
    assert one == same != other


def test_notifications_of_one_request_are_of_one_request(monkeypatch):
    monkeypatch.setattr(requests, "_KNOWN", {})
    knows("an engine", rb"(\d+)_(?:kv|aux).*")
    assert request_of(b"17_kv_0_1") == request_of(b"17_aux") == b"17"
    assert request_of(b"whatever") == b"whatever"
