"""The receiver tells its least slot count; the sender's list and indices use it."""
# rewrites without: inline, to-comprehension, early-return, swap

import numpy as np


class Receiver:
    def __init__(self, name, kv_args):
        self.name = name
        self.kv_args = kv_args

    def announce(self, socket):
        counts = [
            data_len // item_len
            for data_len, item_len in zip(
                self.kv_args.kv_data_lens, self.kv_args.kv_item_lens, strict=True
            )
        ]
        socket.send_multipart(
            [
                self.name.encode(),
                np.array(self.kv_args.kv_data_ptrs, dtype=np.uint64).tobytes(),
                str(self.kv_args.device_id).encode(),
                str(min(counts)).encode(),  # min-first: KV101
            ]
        )


class PeerInfo:
    def __init__(self, msg):
        self.name = msg[0].decode()
        self.dst_kv_data_ptrs = np.frombuffer(msg[1], dtype=np.uint64)
        self.dst_device_id = int(msg[2].decode())
        self.min_counts = int(msg[3].decode())


class Sender:
    def __init__(self, agent, kv_args):
        self.agent = agent
        self.kv_args = kv_args
        self.handles = {}
        self.peers = {}

    def add(self, msg):
        peer = PeerInfo(msg)
        self.peers[peer.name] = peer
        runs = []
        for base_ptr, item_len in zip(
            peer.dst_kv_data_ptrs, self.kv_args.kv_item_lens, strict=True
        ):
            addrs = np.arange(peer.min_counts) * item_len + base_ptr  # min-first: KV102
            runs.append(np.column_stack([addrs, np.full(peer.min_counts, item_len)]))
        self.handles[peer.name] = self.agent.prep_xfer_dlist(peer.name, np.vstack(runs), "VRAM")
