"""The slot-count fault in released code: found where it was, silent where it was repaired."""

import pytest

from tests.engines.wheels import Found, findings

FILE = "sglang/srt/disaggregation/nixl/conn.py"
POOLS = "sglang/srt/mem_cache/deepseek_v4_memory_pool.py"

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


# The index pool's page count and that of the KV pools it is handed over with.
TWO_FORMULAS = {
    "(size + page_size + 1) // page_size": (549, 551),
    "cdiv(size + global_page_size, page_size)": (249, 251),
}


def of_the_pools(version: str) -> list[Found]:
    return [f for f in findings(f"sglang=={version}", POOLS) if f["code"] == "KV105"]


def test_two_formulas_of_one_list_are_told_with_their_places():
    (finding,) = [f for f in of_the_pools("0.5.21") if f["status"] != "guarded"]
    assert finding["status"] == "unguarded"
    assert finding["confidence"] == "high"
    told = {step["line"]: step["message"] for step in finding["trace"] if step["path"] == POOLS}
    for formula, (first, last) in TWO_FORMULAS.items():
        assert formula in finding["message"]
        assert [line for line, says in told.items() if first <= line <= last and formula in says]
    first, last = TWO_FORMULAS["(size + page_size + 1) // page_size"]
    assert first <= finding["line"] <= last


@pytest.mark.parametrize("version", ["0.5.20", "0.5.22", "0.5.23"])
def test_one_formula_or_the_least_count_is_no_finding(version):
    assert [f for f in of_the_pools(version) if f["status"] != "guarded"] == []


@pytest.mark.parametrize("version", ["0.5.22", "0.5.23"])
def test_what_settles_two_formulas_is_the_least_count_where_the_list_is_used(version):
    for finding in of_the_pools(version):
        first, last = SETTLED[version]["KV102"][1]
        assert finding["guard"]["path"] == FILE
        assert first <= finding["guard"]["line"] <= last
