"""Programs that run in processes of their own."""

# NIXL imports torch, where there is one, to learn which CUDA it is for: two seconds a process.
WITHOUT_TORCH = "import sys\nsys.modules['torch'] = None\n"
