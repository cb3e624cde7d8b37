"""See README.md. What Triton and UCX read from the environment when imported is set here."""

import os
import sys

if "cuda" in sys.argv:
    os.environ.setdefault("UCX_TLS", "tcp,cuda_copy")
else:
    os.environ.setdefault("UCX_TLS", "tcp")
    os.environ["TRITON_INTERPRET"] = "1"

# What a transfer moves goes through sockets that hold little, so that it stays in flight until its
# target has been asked often enough, however fast the machine is.
os.environ.setdefault("UCX_TCP_SNDBUF", "32k")
os.environ.setdefault("UCX_TCP_RCVBUF", "32k")
os.environ.setdefault("UCX_LOG_LEVEL", "error")
os.environ.setdefault("NIXL_LOG_LEVEL", "ERROR")
