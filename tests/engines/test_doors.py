"""kvlint as the plug-in of released engines: their own loaders find it by its entry points."""

import json

import pytest

SGLANG = [f"sglang==0.5.{patch}" for patch in (13, 21, 23)]
VLLM = "vllm==0.33.0"
# The script, an engine, and the variable by which it chooses among plug-ins.
DOORS = [
    pytest.param("sglang_door.py", SGLANG[-1], "SGLANG_PLUGINS", id="sglang"),
    pytest.param("vllm_door.py", VLLM, "VLLM_PLUGINS", id="vllm"),
]
ANY = pytest.mark.parametrize(("script", "package", "chosen"), DOORS)


def said(ran):
    return [line for line in ran.stderr.splitlines() if line.startswith("kvlint: ")]


def answer(ran):
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("package", SGLANG)
def test_in_sglang_pools_manager_and_transport_are_hooked_and_a_line_says_so(
    engine, tmp_path, package
):
    told = {"KVLINT_RUNTIME": "log", "KVLINT_REPORT": str(tmp_path), "KVLINT_REQUIRE": "all"}
    ran = engine(package).run("sglang_door.py", SGLANG_PLUGINS="kvlint", **told)
    assert answer(ran)["hooked"] == ["transport", "pool", "manager"]
    version = package.replace("==", " ")
    assert {line.partition(" hooks=")[0] for line in said(ran)} == {
        "kvlint: armed: mode=log",
        f"kvlint: armed: mode=log {version} pools",
        f"kvlint: armed: mode=log {version} transport",
    }
    (file,) = tmp_path.glob("armed-*.json")
    hooks = json.loads(file.read_text())["hooks"]
    assert set(hooks.values()) == {"installed"}


def test_in_vllm_worker_and_transport_are_hooked_and_a_line_says_so(engine):
    told = {"KVLINT_RUNTIME": "log", "KVLINT_REQUIRE": "all"}
    ran = engine(VLLM).run("vllm_door.py", VLLM_PLUGINS="kvlint", **told)
    assert answer(ran)["hooked"] == ["transport", "worker"]
    assert {line.partition(" hooks=")[0] for line in said(ran)} == {
        "kvlint: armed: mode=log",
        "kvlint: armed: mode=log vllm 0.33.0 NIXL connector",
    }


@ANY
def test_where_it_is_not_armed_nothing_is_imported_and_nothing_patched(
    engine, script, package, chosen
):
    ran = engine(package).run(script)
    assert answer(ran) == {
        "modules": ["kvlint", "kvlint.runtime_checks", "kvlint.runtime_checks.doors"],
        "hooked": [],
    }
    assert said(ran) == []


@ANY
def test_the_engines_own_filter_keeps_it_out(engine, script, package, chosen):
    ran = engine(package).run(script, KVLINT_RUNTIME="log", **{chosen: "another"})
    assert answer(ran) == {"modules": [], "hooked": []}


@ANY
def test_what_is_required_and_fails_ends_the_process_through_the_engines_loader(
    engine, script, package, chosen
):
    ran = engine(package).run(script, KVLINT_RUNTIME="loud", KVLINT_REQUIRE="all")
    assert (ran.returncode, ran.stdout) == (78, "")
    assert said(ran) == [
        "kvlint: not armed: unknown mode: loud; there are off, log, sample, assert, paranoid"
    ]


def test_a_required_hook_that_sglang_lacks_ends_the_process_as_its_module_is_imported(engine):
    absent = "sglang.MHATokenToKVPool.get_state_buf_infos"
    ran = engine(SGLANG[-1]).run("sglang_door.py", KVLINT_RUNTIME="log", KVLINT_REQUIRE=absent)
    assert ran.returncode == 78
    assert said(ran)[-1] == f"kvlint: not armed: required and missing: {absent}"
