"""The slot-count fault in released code: found where it was, silent where it was repaired."""

import pytest

from tests.engines.wheels import Found, findings

FILE = "sglang/srt/disaggregation/nixl/conn.py"

# Places by first and last line. In 0.5.13 every pool counts its pages by one formula.
FAULTY = {
    "0.5.13": {"KV101": (304, 306), "KV102": (530, 530), "KV103": (972, 974)},
    "0.5.21": {"KV101": (512, 514), "KV102": (771, 771), "KV103": (1660, 1662)},
}
REPAIRED = {
    "0.5.22": [(361, 374), (834, 834), (1184, 1190)],
    "0.5.23": [(483, 496), (1204, 1204), (1388, 1396), (1554, 1560)],
}
# Where a claim is made on the repaired code, and which lines settle it: the minimum.
SETTLED = {
    "0.5.22": {"KV102": (834, (539, 539)), "KV103": (1751, (1184, 1190))},
    "0.5.23": {"KV102": (1204, (650, 650)), "KV103": (2130, (1554, 1560))},
}


def found(version: str) -> tuple[Found, ...]:
    return findings(f"sglang=={version}", FILE)


def at(version: str, code: str, lines: tuple[int, int]) -> list[Found]:
    first, last = lines
    return [f for f in found(version) if f["code"] == code and first <= f["line"] <= last]


@pytest.mark.parametrize(
    ("version", "code"), [(version, code) for version, codes in FAULTY.items() for code in codes]
)
def test_the_fault_is_found_at_its_place(version, code):
    (finding,) = at(version, code, FAULTY[version][code])
    assert finding["status"] == "unguarded"
    assert finding["confidence"] == "high"


@pytest.mark.parametrize("code", ["KV101", "KV103"])
def test_what_holds_today_says_the_formula_of_the_pools(code):
    (finding,) = at("0.5.13", code, FAULTY["0.5.13"][code])
    said = finding["assumption"]["holds_today"] or ""
    plain = said.replace("self.", "").translate(str.maketrans("", "", " ()"))
    assert "size+page_size+1//page_size" in plain, said
    assert finding["severity"] == "warning"


@pytest.mark.parametrize("code", ["KV101", "KV103"])
def test_what_no_longer_holds_does_not_say_so(code):
    (finding,) = at("0.5.21", code, FAULTY["0.5.21"][code])
    assert finding["assumption"]["holds_today"] is None
    assert finding["severity"] == "error"


@pytest.mark.parametrize(
    ("version", "lines"), [(version, lines) for version, all_ in REPAIRED.items() for lines in all_]
)
def test_the_repair_is_no_finding(version, lines):
    shown = [f for code in ("KV101", "KV102", "KV103") for f in at(version, code, lines)]
    assert [f for f in shown if f["status"] != "guarded"] == []


@pytest.mark.parametrize(
    ("version", "code"), [(version, code) for version, codes in SETTLED.items() for code in codes]
)
def test_the_repair_is_explained_by_the_line_that_settles_it(version, code):
    line, (first, last) = SETTLED[version][code]
    (finding,) = at(version, code, (line, line + 2))
    assert finding["status"] == "guarded"
    assert first <= finding["guard"]["line"] <= last
