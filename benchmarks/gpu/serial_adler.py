"""A checksum of the form that SGLang's KV checksum has, to compare with: our own re-implementation.

One thread a page, which walks it from begin to end in loads of 16 bytes, takes the bytes apart and
keeps two sums of 64 bits: of the bytes, and of the bytes each times how many come from it on. They
are the two of Adler-32 (RFC 1950), whose remainder is taken once in 4,096 loads. SGLang goes on to
combine the pages' sums in the block and in a second kernel, which is left out.
"""

import zlib
from typing import Any

import numpy as np

THREADS = 256
SOURCE = r"""
extern "C" __global__ void serial_adler(
    const unsigned long long* begins, const int* lengths, unsigned int* found, int count) {
  int page = blockIdx.x * blockDim.x + threadIdx.x;
  if (page >= count) return;
  const uint4* loads = reinterpret_cast<const uint4*>(begins[page]);
  unsigned long long length = lengths[page], sum = 0, weighted = 0;
  unsigned int many = lengths[page] / 16;
  for (unsigned int at = 0; at < many; ++at) {
    uint4 load = loads[at];
    unsigned int words[4] = {load.x, load.y, load.z, load.w};
    unsigned long long together = 0, within = 0;
#pragma unroll
    for (int word = 0; word < 4; ++word) {
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) {
        unsigned long long value = (words[word] >> (8 * byte)) & 255u;
        together += value;
        within += (15 - 4 * word - byte) * value;
      }
    }
    sum += together;
    weighted += (length - 16ull * at - 15) * together + within;
    if ((at & 4095) == 4095) {
      sum %= 65521u;
      weighted %= 65521u;
    }
  }
  unsigned int a = (1 + sum) % 65521u, b = (length + weighted) % 65521u;
  found[page] = b << 16 | a;
}
"""


class SerialAdler:
    """Adler-32 of each of N pages, given by address and by a length that 16 divides."""

    def __init__(self, torch: Any, addresses: np.ndarray, lengths: np.ndarray) -> None:
        import cupy

        self._stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        self._kernel = cupy.RawKernel(SOURCE, "serial_adler")
        self.found = torch.zeros(len(addresses), dtype=torch.int32, device="cuda")
        self._tables = (
            torch.from_numpy(addresses.view(np.int64)).cuda(),
            torch.from_numpy(lengths.astype(np.int32)).cuda(),
            self.found,
        )
        self._grid = (-(-len(addresses) // THREADS),)
        places = [np.uint64(table.data_ptr()) for table in self._tables]
        self._arguments = (*places, np.int32(len(addresses)))

    def __call__(self) -> None:
        with self._stream:
            self._kernel(self._grid, (THREADS,), self._arguments)

    def is_right(self, page: int, content: bytes) -> bool:
        return int(self.found[page].item()) & 0xFFFFFFFF == zlib.adler32(content)
