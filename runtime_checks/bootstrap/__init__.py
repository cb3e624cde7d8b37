"""The folder that `kvlint run` puts first on PYTHONPATH, for the sitecustomize in it."""
