# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""N:M-sparse weights: pruned, packed, and multiplied by compiled kernels.

`prune` makes a weight fit an `Encoding`, `pack` makes a `PackedTensor` of it; both take
arrays of numpy, torch and cupy. `compile` makes a `Program` of MLIR text or of a layer,
which is called on arrays; `advise` predicts how fast patterns are. `nm_sparse.torch`
has layers and pruning for PyTorch.

The packed format is specified in docs/Encoding.md; `encode` and `decode` are its
reference, in plain numpy. `Checkpoint` finds the 2:4 weights of a trained model
(docs/Checkpoints.md); `kept_importance` and `output_error` say what a pattern keeps of
one (docs/Advise.md).
"""

from .bindings.library import LibraryNotFoundError, RuntimeFailure
from .compiler import CompileError
from .encoding import (
    FORMAT,
    VERSIONS,
    Encoding,
    EncodingError,
    Level,
    Packed,
    index_dtype,
    packed_shapes,
)
from .files.checkpoint import Checkpoint, Weight
from .files.packed_file import read_packed, write_packed
from .files.tensor_file import CheckpointError
from .interop.operands import OperandError
from .layers.specs import LinearSpec
from .packing.bitmap import (
    BitmapShape,
    bitmap_shape,
    innermost_weight,
    pack_bitmap,
    unpack_bitmap,
)
from .packing.free_bitmap import pack_free_bitmap, unpack_free_bitmap
from .packing.k_major import k_major_shape, pack_k_major, unpack_k_major
from .packing.ragged import pack_ragged
from .packing.shuffled import decode, encode, search_order
from .packing.two_four import Pattern
from .pruning.prune import pattern_mask, prune
from .pruning.quality import kept_importance, kept_magnitude, output_error
from .runtime.emulator import emulate
from .runtime.function import Function, PreparedWeight
from .runtime.program import Program, advise, compile
from .tensors.packed_tensor import PackedTensor, pack
from .tuning.sources import find_tunable
from .tuning.tunable import Tunable, TunableProduct
from .tuning.tune import Tuned, tune

__version__ = "0.1.0"

__all__ = [
    "FORMAT",
    "VERSIONS",
    "BitmapShape",
    "Checkpoint",
    "CheckpointError",
    "CompileError",
    "Encoding",
    "EncodingError",
    "Function",
    "Level",
    "LibraryNotFoundError",
    "LinearSpec",
    "OperandError",
    "Packed",
    "PackedTensor",
    "Pattern",
    "PreparedWeight",
    "Program",
    "RuntimeFailure",
    "Tunable",
    "TunableProduct",
    "Tuned",
    "Weight",
    "advise",
    "bitmap_shape",
    "compile",
    "decode",
    "emulate",
    "encode",
    "find_tunable",
    "index_dtype",
    "innermost_weight",
    "k_major_shape",
    "kept_importance",
    "kept_magnitude",
    "output_error",
    "pack",
    "pack_bitmap",
    "pack_free_bitmap",
    "pack_k_major",
    "pack_ragged",
    "packed_shapes",
    "pattern_mask",
    "prune",
    "read_packed",
    "search_order",
    "tune",
    "unpack_bitmap",
    "unpack_free_bitmap",
    "unpack_k_major",
    "write_packed",
]
