"""Before NumPy is loaded: one BLAS thread a process, since every core runs tests already."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
