"""Hands pages of one pool over to another of its kind, by the NIXL manager of the installed sglang.

    python transfer.py [fp8] [bf16] [bf16_in_fp8_bytes] [--pages 5 6 7 60] [--one-registration]

Released code: pools and manager, its constructor included; the message in which decode tells its
regions; how prefill reads it, prepares both lists, computes indices and posts. Set by hand, as
there is no scheduler and no device: what the constructor of the manager's base class asks a server
for, and host memory where the manager says device memory. A page is right where it holds what the
same page of prefill does. Exit codes: 0 every page is right, 1 not so.
"""

import argparse
import ctypes
from contextlib import nullcontext
from functools import partial
from unittest.mock import MagicMock, patch

import numpy as np
import pools
import torch
from nixl._api import nixl_agent
from sglang.srt.disaggregation.base.conn import KVArgs
from sglang.srt.disaggregation.common.conn import CommonKVManager
from sglang.srt.disaggregation.nixl import conn
from sglang.srt.disaggregation.utils import DisaggregationMode

TOLD = ("kv_data_ptrs", "kv_data_lens", "kv_item_lens")
EMPTY = ("state_types", "state_data_ptrs", "state_data_lens", "state_item_lens", "state_layer_ids")


def base(manager, args, mode, server_args, is_mla):
    """For the constructor of the base class: one rank of everything."""
    manager.kv_args, manager.disaggregation_mode = args, mode
    manager.is_mla_backend, manager.is_hybrid_mla_backend = is_mla, False
    manager.attn_tp_size = manager.pp_size = manager.dcp_size = 1
    manager.dcp_rank = manager.rank_port = 0
    manager.local_ip, manager.decode_kv_args_table = "127.0.0.1", {}


class HostAgent(nixl_agent):
    one_registration = None

    def __init__(self, name, unique, config):
        super().__init__(name, config)

    def register_memory(self, rows, kind):
        whole = self.one_registration
        if whole is not None and kind == "VRAM":
            rows = [(whole.data_ptr(), whole.nbytes, 0, "")]
        return super().register_memory(rows, "DRAM")

    def prep_xfer_dlist(self, peer, rows, kind):
        return super().prep_xfer_dlist(peer, rows, "DRAM")


class Manager(conn.NixlKVManager):
    def __init__(self, pool, mode):
        told = pool.get_contiguous_buf_infos()
        self.pool, self.along = pool, torch.zeros(64, dtype=torch.uint8)
        args = KVArgs()
        vars(args).update(zip(TOLD, told), **{name: [] for name in EMPTY})
        args.aux_data_ptrs = [self.along.data_ptr()]
        args.aux_data_lens = args.aux_item_lens = [self.along.nbytes]
        args.gpu_id = args.engine_rank = args.pp_rank = 0
        args.kv_layer_ids, args.page_size = [], pool.page_size
        base_class = patch.object(CommonKVManager, "__init__", base)
        with base_class, patch("nixl._api.nixl_agent", partial(HostAgent, mode.value)):
            super().__init__(args, mode, None, True)
        self.pages = [
            np.ctypeslib.as_array((ctypes.c_uint8 * length).from_address(first)).reshape(-1, item)
            for first, length, item in zip(*told)
        ]

    def _start_bootstrap_thread(self):
        """Nobody waits for messages: `announce` hands the only one over."""

    _start_decode_listener_thread = _start_heartbeat_checker_thread = _start_bootstrap_thread


def announce(decode, prefill):
    wire, receiver = MagicMock(), conn.NixlKVReceiver.__new__(conn.NixlKVReceiver)
    receiver.kv_mgr, receiver.bootstrap_infos = decode, [{}]
    receiver._connect_to_bootstrap_server = lambda info: (wire, MagicMock())
    receiver._register_kv_args()
    ((_, *frames),) = wire.send_multipart.call_args.args
    prefill._add_remote_peer(conn.KVArgsRegisterInfo.from_zmq(frames))


def send(prefill, decode, pages):
    pages = np.array(pages, dtype=np.int32)
    there = decode.kv_args.kv_data_ptrs
    handle = prefill.send_kvcache(decode.agent.name, pages, there, pages, 0, "request")
    while (state := prefill.agent.check_xfer_state(handle)) == "PROC":
        pass
    assert state == "DONE", state


def hand_over(kind, pages, one_registration):
    """(Whether all is right, what there is to say)."""
    lying = pools.side_by_side() if one_registration else nullcontext()
    with lying as HostAgent.one_registration:
        decode = Manager(pools.KINDS[kind](), DisaggregationMode.DECODE)
    HostAgent.one_registration = None
    prefill = Manager(pools.KINDS[kind](), DisaggregationMode.PREFILL)
    fresh = np.random.default_rng(0)
    for region in prefill.pages:
        region[:] = fresh.integers(1, 256, region.shape, dtype=np.uint8)
    slots = f"regions of {' '.join(str(len(region)) for region in decode.pages)} slots"
    try:
        step = "the lists are"
        announce(decode, prefill)
        step = "the transfer is"
        send(prefill, decode, pages)
    except Exception as error:
        return False, f"{slots}: {step} refused, {type(error).__name__}: {error}"
    rows = list(compared(prefill, decode, pages))
    if all(right == pages and not others for right, _, others in rows):
        return True, f"{slots}: pages {numbers(pages)} are right"
    table = [f"{slots}", "  region  right         wrong         also written"]
    for region, row in enumerate(rows):
        columns = [numbers(pages) for pages in row]
        table.append("  {:6}  {:13} {:13} {}".format(region, *columns).rstrip())
    return False, "\n".join(table)


def compared(prefill, decode, asked):
    """Of each region: pages that are right, pages that are not, others that were written to."""
    for here, there in zip(prefill.pages, decode.pages):
        right = [page for page in asked if (here[page] == there[page]).all()]
        wrong = [page for page in asked if page not in right]
        written = there.any(1).nonzero()[0].tolist()
        yield right, wrong, [page for page in written if page not in asked]


def numbers(pages):
    return " ".join(map(str, pages))


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(pools.KINDS))
    parser.add_argument("--pages", nargs="+", type=int, default=[5, 6, 7, 60])
    parser.add_argument("--one-registration", action="store_true", help="of all that decode has")
    options = parser.parse_args(given)
    all_right = True
    for kind in options.kinds or pools.KINDS:
        is_right, said = hand_over(kind, options.pages, options.one_registration)
        print(f"{kind}: {said}")
        all_right = all_right and is_right
    return 0 if all_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
