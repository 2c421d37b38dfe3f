# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compare_results.py FIRST SECOND TOLERANCE: the relative Frobenius error between
two files of numpy; status 1 when it is larger than the tolerance."""

import sys

import numpy as np

first, second = (np.load(name).astype(np.float64) for name in sys.argv[1:3])
error = np.linalg.norm(first - second) / np.linalg.norm(second)
ok = first.shape == second.shape and error <= float(sys.argv[3])
print(f"{first.shape} differ by {error:.1e}: {'equal enough' if ok else 'too much'}")
sys.exit(not ok)
