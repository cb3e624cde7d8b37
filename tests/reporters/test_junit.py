"""Read back with junitparser, as a CI server would."""

import pytest

from kvlint.findings import Step
from kvlint.reporters.junit import render
from kvlint.reporters.paint import plain
from kvlint.reporters.view import Choice
from tests.samples import claim, fault, guarded, seen, span


def report(*args, **options):
    from junitparser import JUnitXml

    text = "\n".join(render(seen(*args, **options), plain))
    return JUnitXml.fromstring(text.encode())


def test_a_file_is_a_suite_and_a_place_a_failed_test():
    found = report([claim(span("b.py", 2)), claim(span("b.py", 7)), claim(span("a.py"))])
    assert (found.tests, found.failures, found.errors) == (3, 3, 0)
    assert [(suite.name, suite.tests, suite.failures) for suite in found] == [
        ("a.py", 1, 1),
        ("b.py", 2, 2),
    ]
    case, _ = list(found)[1]
    assert case.is_failure
    assert (case.name, case.classname) == ("kvlint.KV900", "b")
    (failure,) = case.result
    assert (failure.type, failure.message) == (
        "KV900",
        "every region gets the slots of the first",
    )
    assert failure.text.splitlines()[0] == "line 2, col 1, every region gets the slots of the first"
    assert "settle it: take the minimum over all regions" in failure.text


def test_a_fault_fails_too():
    ((case,),) = report(faults=[fault()])
    assert (case.name, case.is_failure) == ("kvlint.invalid-syntax", True)


def test_what_is_guarded_passes_and_says_where():
    ((case,),) = report([guarded()], Choice(guarded=True))
    assert case.is_passed
    assert "guarded by: all counts are compared (pkg/a.py:9)" in case.system_out


def test_a_clean_run_is_a_passed_test():
    found = report([guarded()])
    ((case,),) = found
    assert case.is_passed
    assert (found.tests, found.failures) == (1, 0)


@pytest.mark.parametrize("text", ["\x00\x1b[31m", "\ufffe\uffff", "\udcff", "]]>&<\"'", "\x0b\x85"])
def test_the_report_is_xml_whatever_the_code_holds(text):
    step = Step(span(f"{text}.py"), text)
    made = claim(span(f"{text}.py"), message=text, settle=text, trace=(step,))
    ((case,),) = report([made])
    assert case.is_failure
