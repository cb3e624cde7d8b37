"""Every Triton kernel of the released engines is read: how much of it is understood."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvlint.runtime_checks.launches.deciding import Rules
from kvlint.runtime_checks.launches.reading import read
from kvlint.runtime_checks.launches.tables import tables_of
from kvlint.runtime_checks.launches.terms import Terms
from kvlint.runtime_checks.launches.values import Element, Function, Given, Number, Pointer, Value
from tests.engines.wheels import unpacked

# At least so many accesses have addresses and masks of arguments, programs and lanes alone; of
# others what is loaded decides, and where it is all of integers it can be looked up on the device.
LEAST = {"sglang==0.5.23": (1000, 3500, 800), "vllm==0.33.0": (800, 2300, 900)}
INDICES = ("loc", "slot", "ind", "table", "len", "idx", "mapping", "seq")


@pytest.mark.parametrize("package", LEAST)
def test_every_kernel_is_read(package):
    counted: Counter[str] = Counter()
    for node, scope in kernels(unpacked(package)):
        terms = Terms()
        contract = read(Function(node, Given(scope)), arguments(node, terms), terms)
        Rules(contract)
        if not contract.accesses and not contract.unread:
            counted["helpers without accesses"] += 1
            continue
        settled = sum(access.settled for access in contract.accesses)
        counted["kernels"] += 1
        counted["settled"] += settled
        counted["loaded"] += len(contract.accesses) - settled
        counted["looked up"] += len(tables_of(contract))
        counted["unread"] += contract.unread
        every = settled == len(contract.accesses) and not contract.unread
        counted["bounded" if every else "in part" if settled else "not"] += 1
    print(f"\n{package}: {dict(counted)}")
    kernels_read, accesses, looked_up = LEAST[package]
    assert counted["kernels"] + counted["helpers without accesses"] >= kernels_read
    assert counted["settled"] >= accesses
    assert counted["looked up"] >= looked_up
    assert counted["unread"] < counted["settled"] / 5


def kernels(folder: Path) -> Iterator[tuple[ast.FunctionDef, dict[str, object]]]:
    """Each with the constants and functions of its module."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "triton.jit" not in text:
            continue
        tree = ast.parse(text)
        scope: dict[str, object] = {}
        for node in tree.body:
            match node:
                case ast.FunctionDef(name=name):
                    scope[name] = Function(node, Given(scope))
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    inner = value.args[0] if isinstance(value, ast.Call) and value.args else value
                    if isinstance(inner, ast.Constant):
                        scope[name] = inner.value
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                if any("triton.jit" in ast.unparse(mark) for mark in node.decorator_list):
                    yield node, scope


def arguments(node: ast.FunctionDef, terms: Terms) -> dict[str, Value]:
    """As some launch could have them: where nobody launches, types are guessed by the names."""
    found: dict[str, Value] = {}
    touched = _touched(node)
    for parameter in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        name = parameter.arg
        note = ast.unparse(parameter.annotation) if parameter.annotation else ""
        if "constexpr" in note:
            flag = name.upper().startswith(("HAS", "USE", "IS_", "ENABLE", "WITH", "APPLY", "DO_"))
            found[name] = Number(terms.number(1 if flag else 64))
        elif name in touched or name.lower().endswith("ptr"):
            wide = any(word in name.lower() for word in INDICES)
            element = Element("i64", 8) if wide else Element("other", 2)
            found[name] = Pointer(name, terms.number(0, "i64"), element)
        else:
            found[name] = Number(terms.argument(name, "i64" if "int64" in note else "i32"))
    return found


def _touched(node: ast.FunctionDef) -> set[str]:
    """Parameters that an address begins with, or a name that one begins with."""
    begins: dict[str, set[str]] = {}
    for part in ast.walk(node):
        match part:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                begins.setdefault(name, set()).add(_first(value))
            case ast.Call(func=ast.Attribute(attr=attr), args=[address, *_]) if attr in (
                "load",
                "store",
                "make_block_ptr",
                "make_tensor_descriptor",
            ) or attr.startswith("atomic_"):
                begins.setdefault("", set()).add(_first(address))
    known, left = set(), [""]
    while left:
        for name in begins.get(left.pop(), ()):
            if name and name not in known:
                known.add(name)
                left.append(name)
    return known


def _first(node: ast.expr) -> str:
    while True:
        match node:
            case ast.BinOp(left=inner) | ast.Subscript(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner, attr="to")):
                node = inner
            case ast.Name(id=name):
                return name
            case _:
                return ""
