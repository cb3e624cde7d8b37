"""The page as a document: what it says, its structure, and that nothing in it is taken as given."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvlint.assumptions import Entry, Own, Relation, Starts
from kvlint.findings import Confidence, Severity, Span, Status
from kvlint.geometry import Geometry, Region
from kvlint.hypotheses import Hypothesis, Place
from kvlint.runtime_checks.bridge import Answer, Judged
from kvlint.runtime_checks.page.document import page
from kvlint.runtime_checks.page.given import Given
from kvlint.runtime_checks.reading import Process, put_together
from kvlint.runtime_checks.stages.looks import FIGURES, Step
from kvlint.runtime_checks.stages.story import Change
from kvlint.verdicts import verdict
from tests.runtime_checks.test_listed import listed, region
from tests.runtime_checks.test_reading import (
    AT,
    JSON,
    KEYS,
    notified,
    sound,
    transfer,
    violation,
)

HOSTILE = "</style></script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\\u202e&lt;"
EMPTY = {"meta", "br"}


class Read(HTMLParser):
    """What a browser would see: elements, ids, links, headings, text; and that tags are closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.ids, self.links, self.headings, self.text = [], [], [], [], []
        self.attributes, self._open = [], []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self.attributes += given
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.headings.append(int(tag[1]))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] != "style":
            self.text.append(data)

    @property
    def words(self):
        return " ".join("".join(self.text).split())


def hypothesis(number=1, **more):
    given = {
        "id": f"KV103-{number}",
        "code": "KV103",
        "name": "constant-stride-index",
        "relation": Relation(Starts(Own("slots")), "=", Starts(Entry("slots", 0))),
        "lists": ("kv",),
        "every": True,
        "status": Status.UNGUARDED,
        "severity": Severity.ERROR,
        "confidence": Confidence.HIGH,
        "message": "index of region i, slot p is i * S + p",
        "settle": "index by cumulative starts",
        "places": (Place(Span("conn.py", 9, 1, 9, 20), "one stride", "Manager.send"),),
    }
    return Hypothesis(**{**given, **more})


def judged(answer, violations=(), on=(), why="because", **more):
    return Judged(hypothesis(**more), answer, (why,), tuple(violations), 3, tuple(on))


def geometry(*slots, name="layer"):
    return Geometry(
        tuple(
            Region(
                name=f"{name} {number}",
                address=number << 30,
                length=count * 256,
                stride=256,
                transfer_length=256,
                memory_kind="DRAM",
                device=0,
                list="kv",
                layer=number,
            )
            for number, count in enumerate(slots)
        )
    )


def test_without_assumptions_it_tells_all_else_and_how_to_get_them():
    story = put_together([violation()], [transfer(), notified()])
    read = Read(page(Given("run", story)))
    assert "No hypotheses were given; 1 violation was seen once." in read.words
    assert "kvlint check --emit-assumptions assumptions.json PATHS" in read.words
    assert "Violation 1: column [KV103]" in read.words
    assert {"timeline", "violations"} <= set(read.ids)


@pytest.mark.parametrize(
    ("counts", "says"),
    [((6,), "1 violation was seen at least 6 times"), ((1, 1), "2 violations were seen, once each"),
     ((6, 6), "2 violations were seen, at least 12 times in all")],
)  # fmt: skip
def test_how_often_violations_were_seen_is_said_of_all_together(counts, says):
    found = [violation(number=n, count=count) for n, count in enumerate(counts, 1)]
    read = Read(page(Given("run", put_together(found, [transfer()]))))
    assert f"No hypotheses were given; {says}." in read.words


def test_each_answer_has_its_place_with_what_decided_it():
    story = put_together([violation()], [transfer()])
    found = [
        judged(Answer.REFUTED, story.violations, number=1, why="by 1 observation"),
        judged(Answer.CONFIRMED, number=2, why="column has looked at 3 calls"),
        judged(Answer.NOT_EXERCISED, number=3, why="its code was not seen"),
        judged(Answer.NOT_EXERCISED, number=4, why="its code was not seen"),
    ]
    read = Read(page(Given("run", story, judged=found)))
    assert read.words.count("its code was not seen") == 1
    assert "1 of 4 hypotheses is refuted, 1 is confirmed, 2 were not exercised; 1 v" in read.words
    for told in ("by 1 observation", "column has looked at 3 calls", "index by cumulative starts"):
        assert told in read.words
    assert {"refuted", "confirmed", "not-exercised"} <= set(read.ids)
    assert "violations" not in read.ids, "the only violation is told with what it refutes"


def test_the_counterexample_stands_beside_the_values_that_were_seen():
    seen = violation(list=3, index=7, meant={"region": 2, "slot": 1, "index": 6})
    story = put_together([seen], [transfer(), listed(region(2), region(2), region(1), region(4))])
    found = [judged(Answer.REFUTED, story.violations)]
    read = Read(page(Given("run", story, judged=found)))
    assert "3 descriptors before region i" in read.words
    assert "4 region 3" in read.words
    assert "meant: index 6, region 3 slot 1" in read.words
    assert "taken: index 7, region 3 slot 2" in read.words
    assert "taken: index 4, beyond the list of 4" in read.words


def test_what_a_captured_geometry_breaks_is_said_once_for_all_that_are_alike():
    geometries = {f"r-{pid}-pool": geometry(2, 1, 1) for pid in (1, 2)}
    on = [(label, verdict(hypothesis(), one)) for label, one in geometries.items()]
    found = [judged(Answer.REFUTED, on=on)]
    read = Read(page(Given("run", put_together([], []), (), geometries, found)))
    assert read.words.count("captured: 2 geometries") == 2, "a column, and the list by index"
    assert "pool of process 1, pool of process 2" in read.words


def test_what_was_not_seen_is_said():
    story = put_together([], [transfer(state="moving", ended=None)], unread=["x: not a file"])
    processes = [
        Process(1, True, True, ("pairing",), mode="log", transfers=9, uncompared=2),
        Process(2, False, False, ()),
        Process(3, True, False, ()),
    ]
    words = Read(page(Given("run", story, processes))).words
    for told in (
        "the bytes: in this mode nobody compares",
        "process 2: NIXL was never imported there",
        "transfers of process 3: NIXL's classes could not be hooked there",
        "pairing in process 1: switched off by an error of kvlint's own",
        "8 transfers of 9: the last are kept",
        "whether 2 transfers arrived: digested, and not compared",
        "no geometry was captured",
        "x: not a file",
    ):
        assert told in words


def test_its_structure_is_one_that_a_screen_reader_can_follow():
    read = Read(page(full()))
    assert read.headings[0] == 1
    steps = zip(read.headings, read.headings[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps)
    assert read.headings.count(1) == 1
    assert len(read.ids) == len(set(read.ids))
    assert {link.removeprefix("#") for link in read.links} <= set(read.ids)
    assert "lang" in read.attributes
    assert read.tags.count("table") == read.tags.count("caption") > 3
    assert read.attributes.count("scope") == read.tags.count("th")


def full(text="plain", many=1):
    """A story with all there is, in each of whose places stands that text."""
    named = dict.fromkeys(("check", "message", "formula", "side", "agent", "peer"), text)
    sites = [{"call": text, "stack": [text] * many}]
    seen = [
        violation(
            number=number,
            **named,
            region_name=text,
            values={text: text, "b": 1},
            sites=sites,
            history=[text],
            list=3,
            index=4,
            meant={"region": 1, "slot": 2, "index": 3},
        )
        for number in range(1, many + 3)
    ]
    entries = [transfer(f"{text}{n}", AT + n * 10**6, text, text, state=text) for n in range(many)]
    lists = [listed(*[region() for _ in range(min(many, 300) + 2)], owner=text, side=text)]
    story = put_together(seen, [*entries, *lists], unread=[text] * many)
    geometries = {f"{text}{n}": geometry(*[2, 1] * (many + n)) for n in range(2)}
    on = [(label, verdict(hypothesis(), one)) for label, one in geometries.items()]
    told = dict.fromkeys(("code", "name", "message", "settle", "holds_today"), text)
    places = (Place(Span(text, 1, 1, 1, 2), text, text),) * many
    answers = list(Answer) * many
    found = [
        judged(answer, story.violations[: many + 1], on, text, **told, places=places, trace=places)
        for answer in answers
    ]
    process = Process(1, True, True, (text,), run=text, mode=text, versions={text: text})
    return Given(text, story, [process], geometries, found, text)


def hostile_page():
    return page(full(HOSTILE))


def test_nothing_that_a_record_holds_becomes_an_element():
    read, plain = Read(hostile_page()), Read(page(full()))
    assert sorted(read.tags) == sorted(plain.tags)
    assert set(read.attributes) == set(plain.attributes)
    assert HOSTILE in read.words


def test_what_no_browser_shows_is_spelt_out():
    text = page(full("a\x00b\ud800c\u202ed\ne"))
    assert "a\\x00b\\ud800c\\u202ed\\ne" in text
    text.encode()


def test_the_page_is_bounded_and_says_what_it_leaves_out():
    text = page(full("</p>" + "x" * 4000, many=700))
    assert len(text.encode()) < 6 << 20
    words = Read(text).words
    for told in ("more characters)", "more refuted hypotheses are not shown", "more frames"):
        assert told in words


SLOW = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(
    st.dictionaries(KEYS, JSON, max_size=4),
    st.dictionaries(KEYS, JSON, max_size=4),
    st.dictionaries(st.sampled_from(["region", "slot", "index"]), JSON),
    JSON,
)
def test_any_record_makes_a_page(odd, other, meant, index):
    violations = [violation(meant=meant, index=index, list=3) | odd, violation(**other)]
    entries = [transfer(**other), notified(), listed(region(), region()), transfer() | odd]
    story = put_together(sound("violations", violations), sound("transfers", entries))
    found = [judged(answer, story.violations) for answer in Answer]
    Read(page(Given("run", story, judged=found)))


def test_pages_that_changed_are_told_as_in_the_terminal():
    story = put_together([], [])
    steps = [
        Step(stage, ("r", 1), "pool", "layer 0", 3, AT + at, digest * FIGURES)
        for at, (stage, digest) in enumerate([("store", "a"), ("arrival", "b")])
    ]
    story.changes.found.append(Change("A", True, "k", "layer 0", 2, tuple(steps), 0))
    words = Read(page(Given("run", story))).words
    assert "no violation was seen, and pages of 1 request changed." in words
    assert "request A, layer 0, page 2: first differs at arrival (pool, process 1)" in words
    assert "b" * FIGURES in words


def test_what_several_processes_have_alike_is_drawn_once_whatever_their_lists_are_called():
    one = geometry(2, 1)
    other = Geometry(tuple(replace(r, address=r.address + 4096, list="kv.2") for r in one.regions))
    different = geometry(2, 2)
    captured = {"r-1-a": one, "r-2-b": other, "r-3-c": different}
    read = Read(page(Given("run", put_together([], []), (), captured)))
    assert read.tags.count("svg") == 2
    assert "a of process 1, b of process 2" in read.words


def test_a_long_list_of_what_was_not_exercised_is_folded():
    def told(many):
        found = [judged(Answer.NOT_EXERCISED, why="not seen", number=n) for n in range(many)]
        return Read(page(Given("run", put_together([], []), judged=found)))

    assert "9 hypotheses" in told(9).words
    assert ("open" in told(9).attributes, "open" in told(8).attributes) == (False, True)
