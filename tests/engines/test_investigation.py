"""examples/investigation: geometry of the released pools, what the released code assumes of it, and
what becomes of a request, beside each other."""

import json
import subprocess
import sys
from typing import Any

import pytest

from kvlint.geometry import Geometry
from tests.engines.investigation import (
    KINDS,
    README,
    VERSIONS,
    Workplace,
    captured,
    recapture,
    without_addresses,
)
from tests.engines.transcripts import commands, lasting

# Slots of c4 entries, index keys and c128 entries.
SLOTS = {
    "0.5.13": {
        "fp8": (161, 161, 161),
        "bf16": (161, 161, 161),
        "bf16_in_fp8_bytes": (161, 83, 161),
    },
    "0.5.21": {
        "fp8": (164, 161, 288),
        "bf16": (164, 161, 288),
        "bf16_in_fp8_bytes": (164, 83, 288),
    },
    "0.5.22": {
        "fp8": (164, 164, 288),
        "bf16": (164, 164, 288),
        "bf16_in_fp8_bytes": (164, 87, 288),
    },
}
# What a request of DeepSeek-V4 comes through, from decode's announcement to the post.
ON_THE_WAY = {
    "NixlKVManager.__init__",
    "NixlKVManager._init_equal_tp_prep_handle",
    "NixlKVManager._prep_equal_tp_dlist",
    "NixlKVManager._send_kvcache_generic",
    "NixlKVReceiver._register_kv_args",
}
# And what it does not: heads that are split, and memory that is in part the host's.
ASIDE = {"NixlKVManager._init_hetero_tp_prep_handle", "NixlKVManager.send_kvcache_mixed"}


@pytest.fixture(scope="module")
def workplace(engine, tmp_path_factory) -> Workplace:
    return Workplace(tmp_path_factory.mktemp("investigation"), engine)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_kept_is_what_the_released_pools_are(version, engine, tmp_path):
    pages = recapture(engine(f"sglang=={version}"), tmp_path)
    for kind in KINDS:
        kept = without_addresses(captured(version, kind).read_bytes())
        assert without_addresses((tmp_path / f"{kind}.json").read_bytes()) == kept
    # The allocator asks no pool how many pages it holds.
    assert pages == [1, 160]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_regions_are_named_and_counted(version, kind):
    kv = Geometry.from_json(captured(version, kind).read_bytes()).regions_of("kv")
    layers = {"c4 kv": (1, 3), "c4 index key": (1, 3), "c128 kv": (2, 4)}
    assert [(region.role, region.layer) for region in kv] == [
        (role, layer) for role, both in layers.items() for layer in both
    ]
    assert [region.slots for region in kv] == [n for n in SLOTS[version][kind] for _ in range(2)]
    assert kv[2].stride == 64 * (132 if kind == "fp8" else 256)


def test_the_document_shows_what_its_commands_print(workplace):
    shown = commands(README.read_text(encoding="utf-8"))
    printed = [(c.within, c.line, lasting(workplace.run(c))) for c in shown]
    assert printed == [(c.within, c.line, c.lasting) for c in shown]


@pytest.fixture(scope="module")
def verified(workplace):
    """Of each release, what kvlint says of each assumption on the three pools."""

    def verify(version: str) -> list[dict[str, Any]]:
        wheel, options = f"sglang-{version}", ["--output-format", "json"]
        for kind in KINDS:
            options += ["--geometry", f"geometry/{wheel}-{kind}.json"]
        code = f"{wheel}/sglang/srt/disaggregation/nixl"
        ran = subprocess.run(
            [sys.executable, "-m", "kvlint", "verify", code, "--project", wheel, *options],
            cwd=workplace.folder,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 1, ran.stderr
        return json.loads(ran.stdout)["assumptions"]

    return {version: verify(version) for version in VERSIONS}


def is_of_slots(one: dict[str, Any]) -> bool:
    return "slots" in one["formula"] or "S0" in one["formula"]


def cells() -> dict[tuple[str, str], tuple[str, str]]:
    """The document's table: (release, pool) -> (what is assumed, what became of the request)."""
    text = README.read_text(encoding="utf-8")
    shown = text.split("<!-- cells:start -->")[1].split("<!-- cells:end -->")[0].strip()
    found = {}
    for line in shown.splitlines()[2:]:
        release, *three = (cell.strip() for cell in line.strip("|").split("|"))
        for kind, cell in zip(KINDS, three, strict=True):
            assumed, request = cell.split(", ")
            found[release.removeprefix("sglang "), kind] = assumed, request
    assert len(found) == len(VERSIONS) * len(KINDS)
    return found


def test_the_table_says_what_kvlint_does(verified):
    for number, kind in enumerate(KINDS):
        for version, assumptions in verified.items():
            found = {
                one["verdicts"][number]["outcome"]
                for one in assumptions
                if one["definition"] in ON_THE_WAY and is_of_slots(one)
            }
            assumed = "breaks" if "broken" in found else "holds"
            assert found <= {"broken", "holds"}
            assert cells()[version, kind][0] == assumed, (version, kind)


def test_the_table_says_what_became_of_requests():
    """As the transcripts of the document have it, which another test compares."""
    shown = [
        c for c in commands(README.read_text(encoding="utf-8")) if c.line == "python transfer.py"
    ]
    assert [command.within for command in shown] == [f"sglang {version}" for version in VERSIONS]
    for version, command in zip(VERSIONS, shown, strict=True):
        ends = {"are right": "arrives", "refused, nixlNotFoundError: NIXL_ERR_NOT_FOUND": "refused"}
        for kind, line in zip(KINDS, command.prints.splitlines(), strict=True):
            (became,) = [became for end, became in ends.items() if line.endswith(end)]
            assert line.startswith(f"{kind}: ")
            assert cells()[version, kind][1] == became


@pytest.mark.parametrize("version", VERSIONS)
def test_what_else_breaks_is_off_the_way_or_an_item_length(version, verified):
    for one in verified[version]:
        broken = [verdict for verdict in one["verdicts"] if verdict["outcome"] == "broken"]
        if not broken or (one["definition"] in ON_THE_WAY and is_of_slots(one)):
            continue
        sends_a_length = "item length" in one["formula"] and one["definition"].endswith("kv_args")
        assert one["definition"] in ASIDE or sends_a_length, one
