"""No condition depends on the name of an engine's file, class or function.

The vocabulary holds nouns of the field and third-party APIs. Names that an engine defines
itself, and that no noun explains, are listed here: none of them may stand in the linter's
code or vocabulary as a value. Documents (docstrings, comments) may mention them.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# What sglang, vllm and lmcache call their own: projects, modules, classes, functions, fields.
ENGINES = """
sglang vllm lmcache srt dynamo
disaggregation kv_connector nixl_connector kv_transfer mem_cache memory_pool memory_pool_host
memory_pool_v4 deepseek_v4_memory_pool staging_buffer staging_handler hicache hisparse
KVArgs KVManager KVSender KVReceiver KVPoll KVArgsRegisterInfo NixlKVManager MooncakeKVManager
MHATokenToKVPool MLATokenToKVPool DSATokenToKVPool DeepSeekV4TokenToKVPool TokenToKVPool
NixlConnector NixlConnectorWorker NixlAgentMetadata NixlConnectorScheduler TpKVTopology
MemoryObj PDBackend LMCacheEngine CacheGenConfig
kv_args kv_mgr kv_data_ptrs kv_data_lens kv_item_lens dst_kv_ptrs dst_kv_item_len
_num_slots_src dst_num_slots num_kv_slots prep_handles prep_handles_slice_dst
repeat_indices_over_layers _init_equal_tp_prep_handle _init_hetero_tp_prep_handle
_prep_equal_tp_dlist _pack_stride_descs _send_kvcache_generic get_contiguous_buf_infos
get_mha_kv_ptrs_with_pp group_concurrent_contiguous build_transfer_entry_pairs
register_buffer_to_engine register_kv_caches _get_block_descs_ids add_remote_agent
dst_num_blocks kv_caches_base_addr engine_id tp_ratio block_len_per_layer
"""

SOURCES = sorted([*(ROOT / "kvlint").rglob("*.py"), *(ROOT / "rules").glob("*.py")])
VOCABULARY = sorted((ROOT / "kvlint/analysis/vocabulary").glob("*.toml"))


def values(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """String constants that code can compare with: docstrings and examples are documents."""
    documents: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                first = node.body[0] if node.body else None
                if isinstance(first, ast.Expr):
                    documents.add(id(first.value))
            case ast.Assign(targets=[ast.Name(id="BAD" | "GOOD")], value=value):
                documents.add(id(value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documents:
            text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
            if isinstance(text, str):
                yield node.lineno, text


def engine_names(text: str) -> set[str]:
    """Whole names in `text`, whatever their case."""
    return set(re.findall(r"[a-z_][a-z0-9_]*", text.lower())) & NAMES


NAMES = set(ENGINES.lower().split())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_string_in_the_code_names_an_engines_own(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [(line, text) for line, text in values(tree) if engine_names(text)] == []


@pytest.mark.parametrize("path", VOCABULARY, ids=lambda path: path.name)
def test_no_word_of_the_vocabulary_names_an_engines_own(path):
    words: list[str] = []
    stack: list[object] = [tomllib.loads(path.read_text(encoding="utf-8"))]
    while stack:
        match stack.pop():
            case dict() as table:
                words += [key for key in table if isinstance(key, str)]
                stack.extend(table.values())
            case list() as items:
                stack.extend(items)
            case str(word):
                words.append(word)
    assert words
    assert [word for word in words if engine_names(word)] == []


def test_the_check_itself_sees_a_name():
    code = 'def f(name):\n    """KVArgs"""\n    return name == "KVArgs" or b"kv_args" in name\n'
    assert [text for _, text in values(ast.parse(code)) if engine_names(text)] == [
        "KVArgs",
        "kv_args",
    ]
