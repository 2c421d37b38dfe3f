# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m nm_sparse`: see `nm_sparse.cli`."""

import sys

from .cli import main

sys.exit(main())
