"""What the first region measures is told to the peer in a message."""
# rewrites without: to-comprehension, to-loop, early-return, keyword, numpy, swap

from dataclasses import dataclass


@dataclass
class Geometry:
    item_len: int
    num_regions: int

    def pack(self):
        return f"{self.item_len},{self.num_regions}".encode()


def tell(socket, kv_ptrs, kv_item_lens):
    found = Geometry(item_len=kv_item_lens[0], num_regions=len(kv_ptrs))  # KV101
    socket.send_multipart([found.pack()])
