"""JUnit's XML: a test suite a file, a failed test a place; one passed test where all is well."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import PurePosixPath
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kvlint.findings import Fault, Finding, Step
from kvlint.reporters.facts import facts
from kvlint.reporters.paint import Paint, printable
from kvlint.reporters.view import View


def render(view: View, paint: Paint) -> Iterator[str]:
    report = Element("testsuites", name="kvlint")
    places: list[Fault | Finding] = [*view.faults, *view.shown]
    places.sort(key=lambda place: place.span)
    for path, group in groupby(places, key=lambda place: place.span.path):
        suite = _suite(report, view.path(path))
        for place in group:
            _case(view, suite, place)
    if not places:
        SubElement(_suite(report, "kvlint"), "testcase", name="No errors found", classname="kvlint")
    for counted in (*report, report):
        _count(counted)
    indent(report)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield tostring(report, encoding="unicode")


def _suite(report: Element, name: str) -> Element:
    return SubElement(report, "testsuite", name=printable(name), package="kvlint")


def _case(view: View, suite: Element, place: Fault | Finding) -> None:
    path, span = view.path(place.span.path), place.span
    code = place.code if isinstance(place, Finding) else place.name
    case = SubElement(
        suite,
        "testcase",
        name=printable(f"kvlint.{code}"),
        classname=printable(str(PurePosixPath(path).with_suffix(""))),
        line=str(span.line),
        column=str(span.column),
    )
    told = [f"line {span.line}, col {span.column}, {place.message}"]
    if isinstance(place, Finding):
        told += [f"{title}: {text}" for title, text in facts(view, place, lambda s: _step(view, s))]
    body = "\n".join(printable(line) for text in told for line in text.splitlines())
    if isinstance(place, Finding) and view.settled(place):
        SubElement(case, "system-out").text = body
    else:
        message = printable(" ".join(place.message.split()))
        SubElement(case, "failure", message=message, type=printable(code)).text = body


def _count(counted: Element) -> None:
    counted.set("tests", str(len(list(counted.iter("testcase")))))
    counted.set("failures", str(len(list(counted.iter("failure")))))
    counted.set("errors", "0")


def _step(view: View, step: Step) -> str:
    return f"{step.says} ({view.path(step.span.path)}:{step.span.line})"
