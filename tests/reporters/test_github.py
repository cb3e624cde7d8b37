import pytest

from kvlint.findings import Span, Step
from kvlint.reporters.github import render
from kvlint.reporters.paint import plain
from kvlint.reporters.view import Choice
from tests.samples import claim, fault, guarded, seen, span


def commands(*args, **options):
    return list(render(seen(*args, **options), plain))


def unescaped(command):
    """Level, properties and text, read as GitHub's runner reads them."""
    head, _, text = command.removeprefix("::").partition("::")
    level, _, named = head.partition(" ")
    properties = dict(part.split("=", 1) for part in named.split(","))

    def plainly(value):
        for escape, character in (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ",")):
            value = value.replace(escape, character)
        return value.replace("%25", "%")

    return level, {name: plainly(value) for name, value in properties.items()}, plainly(text)


def test_a_finding_is_a_command_with_its_place_and_its_facts():
    (command,) = commands([claim(span(line=2, column=5))])
    assert command == (
        "::error title=kvlint (KV900),file=pkg/a.py,line=2,col=5,endLine=2,endColumn=9"
        "::pkg/a.py:2:5: KV900 every region gets the slots of the first"
        "%0Aassumes: slots of region i = slots of region 0"
        "%0Abreaks on: 2 regions of 2, 1 slots: region 1: slots of region 1 is 1, "
        "slots of region 0 is 2"
        "%0Asettle it: take the minimum over all regions"
    )


def test_the_level_says_how_bad_it_is():
    made = [claim(), claim(span(line=2), holds_today="one pool"), guarded(span(line=3))]
    levels = [unescaped(command)[0] for command in commands(made, Choice(guarded=True))]
    assert levels == ["error", "warning", "notice"]


def test_what_spans_lines_has_no_columns():
    (command,) = commands([claim(Span("pkg/a.py", 2, 5, 4, 1))])
    assert ",line=2,endLine=4::" in command


def test_a_fault_is_an_error():
    (command,) = commands(faults=[fault()])
    assert command.startswith("::error title=kvlint (invalid-syntax),file=pkg/broken.py,line=2,")
    assert command.endswith("::pkg/broken.py:2:3: invalid-syntax: '(' was never closed")


@pytest.mark.parametrize("name", ["a,b.py", "a:b.py", "100%25.py", "two\nlines.py"])
def test_every_name_comes_through(name):
    (command,) = commands([claim(span(name), message="50% of:\r\nit")])
    assert "\n" not in command
    assert "\r" not in command
    _, properties, text = unescaped(command)
    assert properties["file"] == name
    assert "KV900 50% of:\nit\nassumes: " in text


def test_no_control_character_of_the_code_reaches_the_log():
    step = Step(span("a\x1b[31m.py"), "checked")
    (command,) = commands([guarded(message="x\x1b[0m", trace=(step,))], Choice(guarded=True))
    assert "\x1b" not in command


def test_paths_are_those_of_the_repository(tmp_path):
    (tmp_path / ".git").mkdir()
    root = tmp_path / "part"
    (command,) = commands([claim()], root=root, here=root / "pkg")
    _, properties, text = unescaped(command)
    assert properties["file"] == "part/pkg/a.py"
    assert text.startswith("part/pkg/a.py:1:1: ")
