"""Which transfers in flight their notification tells apart."""

from kvlint.runtime_checks.nixl.alike import Alike
from kvlint.runtime_checks.stacks import here
from kvlint.runtime_checks.transfers import Transfer


def posted(alike, number, name):
    transfer = Transfer(number, "p", "d", "WRITE", None, None, b"", here(), name=name)
    alike.enter(transfer)
    return transfer


def test_those_in_flight_with_one_notification_are_not_told_apart():
    alike = Alike()
    one, another = posted(alike, 1, "p>d:00#1"), posted(alike, 2, "p>d:11#1")
    assert one.alone
    second = posted(alike, 3, "p>d:00#2")
    assert (one.alone, another.alone, second.alone) == (False, True, False)


def test_once_one_is_over_the_next_is_alone():
    alike = Alike()
    for number in (1, 2):
        assert posted(alike, 7, f"p>d:00#{number}").alone
        alike.leave(7)
    alike.leave(8)


def test_what_was_read_of_is_over():
    alike = Alike()
    transfer = posted(alike, 1, "p#1>d:00#1")
    alike.heard("p#1>d:00#2")
    assert not transfer.heard
    alike.heard("p#1>d:00#1")
    assert transfer.heard


def test_without_a_notification_each_has_a_name_of_its_own():
    alike = Alike()
    assert posted(alike, 1, "p>d:99-1").alone
    assert posted(alike, 2, "p>d:99-2").alone
