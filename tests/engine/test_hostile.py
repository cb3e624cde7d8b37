"""Hostile constructs around a real fault: the file is judged or refused in one line, the file
beside it is judged, and nothing takes long or much memory."""

import json
import os
from functools import partial
from textwrap import indent

import pytest

import kvlint.analysis.link
import kvlint.analysis.lower  # noqa: F401 (here, not in each forked process)
from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from tests.apart import apart

SECONDS = 20  # a tenth of it on a quiet machine

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="asked in forked processes")


# What is said of the fault below: of one region's length for all, and of a length as a stride.
RIGHT = {"KV101", "KV205"}


def around(inside: str, after: str = "") -> str:
    """A real fault with this code in the midst of it and behind it."""
    return f"""
def blocks(agent, kv_data_ptrs, kv_item_lens, pages, device):
    page_bytes = kv_item_lens[0]
{indent(inside, "    ")}
    rows = []
    for base in kv_data_ptrs:
        rows.append((base + pages[0] * page_bytes, page_bytes, device))
    return agent.get_xfer_descs(rows, "VRAM")
{after}"""


def told(root) -> str:
    report = check(root, [root], all_rules())
    lines = [(f.span.path, f.code) for f in report.findings]
    lines += [(f.span.path, f"{f.name}: {f.message}") for f in report.faults]
    return json.dumps(sorted({*lines, *((line, "skipped") for line in report.skipped)}))


def judged(project, content: bytes) -> list[str]:
    """What is told of a hostile file; the file beside it must be judged as ever."""
    root = project({"good.py": around("pass")})
    (root / "hostile.py").write_bytes(content)
    answer = apart(partial(told, root), SECONDS)
    try:
        lines = json.loads(answer)
    except ValueError:
        pytest.fail(answer)
    assert ["good.py", "KV101"] in lines
    return [what for path, what in lines if path != "good.py"]


FIRST = "kv_item_lens[0]"
FOUND = {
    "parentheses": f"x = {'(' * 190}{FIRST}{')' * 190}",
    "lists": f"x = {'[' * 90}{FIRST}{']' * 90}",
    "calls": f"x = {'f(' * 90}{FIRST}{')' * 90}",
    "and": f"x = {FIRST}" + f" and {FIRST}" * 90,
    "comparison": f"x = {FIRST}" + f" < {FIRST}" * 500,
    "strings in a row": "x = " + '"kv_data_ptrs" ' * 500,
    "dictionary": "x = {" + ", ".join(f"'k{n}': kv_item_lens[{n}]" for n in range(900)) + "}",
    "elif": f"if pages:\n    x = {FIRST}\n"
    + "\n".join(f"elif pages == {n}:\n    x = {n}" for n in range(900)),
    "names": "\n".join(f"kv_len_{n} = {FIRST}" for n in range(2000)),
    "targets": " = ".join(f"x{n}" for n in range(5000)) + f" = {FIRST}",
    "appends": "xs = []\n" + f"xs.append({FIRST})\n" * 1000,
    "guards": "\n".join(f"assert page_bytes < kv_item_lens[{n}]" for n in range(900)),
    "functions": "\n".join(" " * n + f"def f{n}(kv):" for n in range(98)) + f"\n{' ' * 98}pass",
    "with": "\n".join(" " * n + f"with f{n}:" for n in range(15)) + f"\n{' ' * 15}pass",
    "for": "\n".join(" " * n + f"for x{n} in f:" for n in range(15)) + f"\n{' ' * 15}pass",
    "if": "\n".join(" " * n + f"if x{n}:" for n in range(98)) + f"\n{' ' * 98}pass",
    "f-strings": "x = f'''{f\"\"\"{f'{f\"{kv_item_lens[0]}\"}'}\"\"\"}'''",
    "huge numbers": "x = kv_item_lens[0] * 10**10**10 * (1 << 10**9) * 0x" + "f" * 10_000,
    "surrogates": 'x = kv_item_lens["\\udcff"]; agent.send({"\\ud800\\0": kv_item_lens[0]})',
    "line separators": 'x = "\u2028\x1c\x85"; y = kv_item_lens[0]',
    "a long string": 'x = "' + "kv_data_ptrs " * 70_000 + '"',
    "a long comment": "# " + "kv_data_ptrs " * 70_000,
    "blank lines": "\n" * 20_000,
    "continued lines": "x = 1 " + "\\\n" * 3000 + "+ 1",
    "type parameters": "def f[T](x: T) -> T:\n    return x\ntype A[T] = T",
    "nested quotes": 'x = f"{kv_item_lens["0"]}"',
}


@pytest.mark.parametrize("inside", FOUND.values(), ids=FOUND)
def test_the_fault_is_found_in_spite_of(project, inside):
    text = around(inside)
    if len(text) > 200_000:  # too much for one function: it stands beside
        text = around("pass", f"\n{inside}\n")
    assert "KV101" in judged(project, text.encode())


CHAINS = {
    "kept in names": "n0 = kv_item_lens[0]\n"
    + "\n".join(f"n{n + 1} = n{n} + x" for n in range(1500)),
    "wrapped in calls": "\n".join(f"page_bytes = f{n % 7}(page_bytes)" for n in range(1500)),
    "doubled": "page_bytes = page_bytes + page_bytes\n" * 1500,
    "in lists": "page_bytes = [page_bytes]\n" * 1500,
    "in fields": "page_bytes = page_bytes.x\n" * 1500,
    "in choices": "\n".join(f"page_bytes = page_bytes if a{n} else b{n}" for n in range(1500)),
    "in branches": "\n".join(f"if a{n}:\n    page_bytes = kv_item_lens[{n}]" for n in range(900)),
    "in comprehensions": "kv_item_lens = [x[0] for x in kv_item_lens]\n" * 500,
    "in loops": "for n in kv_item_lens:\n    page_bytes += n\n" * 500,
    "in negations": "page_bytes = not page_bytes\n" * 1500,
}


@pytest.mark.parametrize("inside", CHAINS.values(), ids=CHAINS)
def test_a_value_is_followed_or_given_up(project, inside):
    assert set(judged(project, around(inside).encode())) <= RIGHT


def functions(number: int) -> str:
    calls = (f"def g{n}(kv_item_lens): return g{n + 1}(kv_item_lens)\n" for n in range(number))
    return f"{''.join(calls)}def g{number}(kv_item_lens): return kv_item_lens[0]\n"


USE = """
def use{n}(self, agent, kv_item_lens, kv_data_ptrs, num_slots):
    n = {value}
    self.kv_item_len = n
    return agent.get_xfer_descs([(p, self.kv_item_len, num_slots) for p in kv_data_ptrs], "VRAM")
"""
PROGRAMS = {
    "calls far down": functions(5000) + USE.format(n=0, value="g0(kv_item_lens)"),
    "a fan of calls": "".join(
        f"def g{n}(kv_item_lens): return g{n + 1}(kv_item_lens) + g{n + 1}(kv_item_lens)\n"
        for n in range(60)
    )
    + USE.format(n=0, value="g0(kv_item_lens)"),
    "a function that calls itself": USE.format(
        n=0, value="use0(self, agent, kv_item_lens, kv_data_ptrs, num_slots + kv_item_lens[0])"
    ),
    "functions that call each other": USE.format(
        n=0, value="use1(self, agent, kv_item_lens, kv_data_ptrs, num_slots + kv_item_lens[0])"
    )
    + USE.format(n=1, value="use0(self, agent, kv_item_lens, kv_data_ptrs, num_slots * 2)"),
    "bases of bases": "class B0: kv = 1\n"
    + "".join(f"class B{n + 1}(B{n}): kv = 1\n" for n in range(3000))
    + f"class D(B3000):{indent(USE.format(n=0, value='self.m(kv_item_lens[0])'), '    ')}",
    "bases in a circle": "class A(B):"
    + indent(USE.format(n=0, value="self.m(kv_item_lens[0])"), "    ")
    + "class B(A): pass\nclass S(S): pass\n",
    "fields in a circle": "class A:\n    def f(self):\n        self.kv_item_len = self.kv_len\n"
    "        self.kv_len = self.kv_item_len + 1\n"
    + indent(USE.format(n=0, value="self.kv_len"), "    "),
    "imports in a circle": "import hostile\nfrom hostile import x as x, y as kv_z\nkv_z = x\n",
    "small functions": "".join(f"def f{n}(a): data_ptr\n" for n in range(10_000)),
    "one function 10,000 times": "def f(a): data_ptr\n" * 10_000,
    "callers": "def g(num_slots): return num_slots\n"
    + "".join(f"def f{n}(n): g(n)\n" for n in range(5_000)),
    "parameters": f"def g({', '.join(f'kv_item_lens{n}=0' for n in range(5000))}): pass\n"
    f"g({', '.join(['kv_item_lens[0]'] * 5000)})\n",
    "decorators": "@d\n" * 5000 + "def g(kv_item_lens): return kv_item_lens[0]\n",
}


@pytest.mark.parametrize(
    "program", [pytest.param(text, id=name) for name, text in PROGRAMS.items()]
)
def test_questions_come_to_an_end(project, program):
    assert set(judged(project, around("pass", program).encode())) == RIGHT


@pytest.mark.parametrize(
    "inside",
    [
        f"page_bytes = {'-' * 900}{FIRST}",
        f"page_bytes = {'not ' * 900}{FIRST}",
        f"page_bytes = {'lambda: ' * 900}{FIRST}",
        f"page_bytes = {'1 if pages else ' * 900}{FIRST}",
        f"page_bytes = {'x ** ' * 900}{FIRST}",
        f"x = {FIRST}{f' + {FIRST}' * 5000}",
        f"x = {FIRST}{f' and {FIRST}' * 5000}",
        f"x = pages{'.next' * 5000}",
        f"x = pages{'.next()' * 900}",
        f"x = pages{'[0]' * 2500}",
        'x = ' + '"kv_data_ptrs" ' * 5000,
        f"x = [{f'{FIRST}, ' * 20_000}]",
    ],
    ids=[
        "minus", "not", "lambda", "if", "power", "plus", "and", "fields", "methods", "items",
        "strings", "a long line",
    ],
)  # fmt: skip
def test_what_is_too_much_is_named(project, inside):
    """Most of it Python still compiles, how much of it depends on the version."""
    (line,) = judged(project, around(inside).encode())
    assert line.startswith(("not-judged: blocks is not judged: ", "invalid-syntax: "))


PLAIN = around("pass").encode()
UTF_16 = around("pass").encode("utf-16")


@pytest.mark.parametrize(
    "content",
    [
        around("x = (").encode(),
        around(f"x = {'(' * 5000}").encode(),
        around(f"x = {'(' * 3000}{')' * 3000}").encode(),
        around(f"x = {'-' * 100_000}1").encode(),
        around('x = """').encode(),
        around("    x = 1\n  y = 2").encode(),
        around("x = 1").replace("        ", "\t").encode(),
        around('print "x"').encode(),
        b"# coding: nonsense\n" + PLAIN,
        b"# coding: hex\n" + PLAIN,
        b"# coding: utf-16\n" + PLAIN,
        b"# coding: ascii\n" + around("x = 'é'").encode(),
        b"\xef\xbb\xbf# coding: latin-1\n" + PLAIN,
        UTF_16,
        PLAIN + b"# \xff\xfe\n",
        PLAIN + b"\0",
        PLAIN + b"\x1a",
        bytes(range(256)) * 2000 + b"kv_data_ptr",
    ],
)
def test_what_is_no_python_is_one_line(project, content):
    (line,) = judged(project, content)
    assert line.startswith("invalid-syntax: ")
    assert "\n" not in line


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b"\n", b"\r"),
        PLAIN.replace(b"    ", b"\t"),
        PLAIN.replace(b"\ndef", b"\n\x0cdef"),
        b"\xef\xbb\xbf" + PLAIN,
        b"# -*- coding: latin-1 -*-\n" + around("x = 'é'").encode("latin-1"),
        b"# vim: set fileencoding=cp1251 :\n" + around("x = 'ж'").encode("cp1251"),
        PLAIN.rstrip(b"\n"),
    ],
    ids=["crlf", "cr", "tabs", "form feed", "byte order mark", "latin-1", "cp1251", "no last end"],
)
def test_python_of_another_shape_is_judged(project, content):
    assert set(judged(project, content)) == RIGHT


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n\n", b"\x0c"])
def test_nothing_is_nothing_to_tell_of(project, content):
    assert judged(project, content) == []


def test_ten_megabytes_are_skipped_in_one_line(project):
    (line,) = judged(project, PLAIN * 40_000)
    assert line == "skipped"
