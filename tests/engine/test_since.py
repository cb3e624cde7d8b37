"""Which findings have to do with a change. Texts and changes are small and written by hand."""

import pytest

from kvlint.engine.changes import Changes, Hunk
from kvlint.engine.since import changed_only
from kvlint.findings import Report, Silence, Step
from kvlint.tree import Tree
from tests.samples import claim, fault, finding, guarded, span

TEXT = """\
class Sender:
    def connect(self, counts):
        n = counts[0]
        self.n = n

    def send(self):
        return self.n


@wrap
def after():
    pass
"""


def left(made, *hunks, tracked=("pkg/a.py", "pkg/b.py"), others=()):
    """What stays a finding when pkg/a.py is TEXT now, and `hunks` are what changed in it."""
    report = Report((finding(made),), tuple(others))
    changes = Changes("main", {"pkg/a.py": hunks}, frozenset(tracked))
    return changed_only(report, changes, Tree("/nowhere", {"pkg/a.py": TEXT.encode()}))


def counts(made, *hunks):
    return bool(left(made, *hunks).findings)


def test_a_finding_counts_where_one_of_its_lines_changed():
    assert counts(claim(span(line=3)), Hunk(3, 3))
    assert counts(claim(span(line=3)), Hunk(1, 9))
    assert not counts(claim(span(line=3)), Hunk(4, 4), Hunk(2, 2))


def test_what_does_not_count_is_silenced_by_the_revision():
    (silenced,) = left(claim(span(line=3)), Hunk(4, 4)).silenced
    assert (silenced.by, silenced.reason) == (Silence.UNCHANGED, "main")


def test_a_step_on_its_way_or_its_guard_counts():
    traced = claim(span("pkg/b.py", 3), trace=(Step(span(line=4), "stored here"),))
    assert counts(traced, Hunk(4, 4))
    assert not counts(traced, Hunk(7, 7))
    assert counts(guarded(span("pkg/a.py", 3), guard_line=7), Hunk(7, 7))


IN_CONNECT = claim(span(line=3))


@pytest.mark.parametrize(
    ("hunk", "does"),
    [
        (Hunk(3, 2, ("        check(counts)",)), True),
        (Hunk(5, 4, ("        assert same(self.n)",)), True),
        (Hunk(5, 4, ("    def gone(self):", "        pass")), False),
        (Hunk(2, 1, ("    x = 1",)), False),
        (Hunk(7, 6, ("        check(self.n)",)), False),
        (Hunk(4, 3, ("        # a remark", "")), False),
        (Hunk(4, 4, ("        check(counts)",)), True),
        (Hunk(4, 4, ("        if len(set(counts)) != 1:",)), True),
        (Hunk(4, 4, ("            len(set(counts)) == 1,",)), True),
        (Hunk(4, 4, ("        self.n = n + 0",)), False),
        (Hunk(4, 4, ("        self.n: int = n",)), False),
        (Hunk(4, 4, ("        m = min(counts)", "        self.n = m")), True),
    ],
    ids=[
        "a check went",
        "the last check went",
        "the next definition went",
        "what stood before went",
        "from another definition",
        "a remark went",
        "a check was replaced",
        "a branch was replaced",
        "a part of a check was replaced",
        "an assignment was replaced",
        "an annotated one was replaced",
        "fewer lines than before",
    ],
)
def test_a_guard_may_have_gone_from_the_definition(hunk, does):
    assert counts(IN_CONNECT, hunk) == does


def test_a_step_in_the_definition_that_lost_a_guard_counts():
    traced = claim(span("pkg/b.py", 3), trace=(Step(span(line=4), "stored here"),))
    assert counts(traced, Hunk(3, 2, ("        check(counts)",)))


HELPERS = """\
def require_equal(found):
    pass

class Pool:
    def __init__(self, lens):
        self.lens = lens

    def first(self):
        return self.lens[0]

def uses(lens):
    require_equal(lens)
    return lens[0]

def makes(lens):
    return Pool(lens)

def neither(lens):
    return lens[0]
"""


@pytest.mark.parametrize(
    ("hunk", "lines"),
    [
        (Hunk(2, 2, ("    assert len(set(found)) == 1",)), {1, 2, 12}),
        (Hunk(2, 2, ("    log(found)",)), {1, 2}),
        (Hunk(6, 5, ("        if len(set(lens)) != 1: raise ValueError",)), {5, 6, 9, 16}),
        (Hunk(9, 9, ("        return min(self.lens)",)), {5, 6, 9}),
    ],
    ids=["from a helper", "no guard", "from a constructor", "from a method"],
)
def test_a_guard_that_went_counts_for_who_leaned_on_it(hunk, lines):
    everywhere = [finding(claim(span(line=line))) for line in (1, 2, 5, 6, 9, 12, 16, 19)]
    changes = Changes("main", {"pkg/a.py": [hunk]}, frozenset({"pkg/a.py"}))
    tree = Tree("/nowhere", {"pkg/a.py": HELPERS.encode()})
    kept = changed_only(Report(tuple(everywhere)), changes, tree).findings
    assert {f.span.line for f in kept} == lines


def test_a_file_that_is_new_counts_as_a_whole():
    assert left(claim(span("pkg/new.py", 3))).findings


def test_faults_count_where_anything_in_their_file_changed():
    faults = [fault("pkg/a.py"), fault("pkg/b.py"), fault("pkg/new.py")]
    report = left(IN_CONNECT, Hunk(3, 3), others=faults)
    assert report.faults == (faults[0], faults[2])
    assert report.notices == (
        "not shown, in files that have not changed since main: 1 file not understood",
    )
