"""What KV101 says of an entry that stands for all."""

from textwrap import dedent

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules


def test_quantities_of_one_region_are_one_finding_in_the_plural(project):
    source = """
    def blocks(agent, kv_caches):
        shape = kv_caches[0].shape
        size = kv_caches[0].element_size()
        rows = [(cache.data_ptr(), shape[0] * shape[1] * size, 0) for cache in kv_caches]
        return agent.get_reg_descs(rows, "VRAM")
    """
    root = project({"a.py": dedent(source)})
    (found,) = check(root, [root], all_rules()).findings
    assert found.message.startswith("shape and element size of region 0 stand for every region: ")
