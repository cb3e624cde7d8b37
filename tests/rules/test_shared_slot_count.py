"""What KV102 takes for a descriptor list, and what not."""

from textwrap import dedent

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules


def test_pointers_picked_by_group_are_no_descriptors(project):
    """A list grown by slices of pointers has as many entries as groups; that counts no slots."""
    source = """
    class Sender:
        def __init__(self, args, agent):
            self.args = args
            self.agent = agent
            args.kv_buf_groups = 3 if args.index_dim is not None else 2

        def pick(self, src_kv_ptrs, dst_kv_ptrs, num_layers, start, end):
            kv_buf_groups = self.args.kv_buf_groups
            if len(src_kv_ptrs) // kv_buf_groups == len(dst_kv_ptrs) // kv_buf_groups:
                picked = dst_kv_ptrs
            else:
                picked = []
                for i in range(kv_buf_groups):
                    offset = i * num_layers
                    picked.extend(dst_kv_ptrs[offset + start : offset + end])
                if end > start:
                    for i in range(kv_buf_groups):
                        offset = i * num_layers + kv_buf_groups * start
                        picked.extend(dst_kv_ptrs[offset : offset + start])
            self.agent.prep_xfer_dlist("", picked, "VRAM")
            return src_kv_ptrs, picked, len(picked)
    """
    root = project({"groups.py": dedent(source)})
    report = check(root, [root], all_rules())
    assert not report.faults
    assert not report.findings
