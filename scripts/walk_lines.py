# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which lines of the IR after a stage the walks through the compiler show, and how
they are shortened: docs/DataPath.md, docs/DecodePath.md, docs/SparsePath.md
and docs/ShuffledPath.md."""

import re

# Text of the IR that the walk leaves out of lines that stay.
SHORTER = [
    (r", *alignment = \d+ : i64|\{alignment = \d+ : i64\} ", ""),
    (r"#gpu\.address_space<workgroup>", "#workgroup"),
    (r"indexing_maps = \[.*?\](?=[ ,])", "indexing_maps = [...]"),
    (r"#nm_sparse\.packed<.*?>, \[[\d, ]+\], \w+>", "#packed"),
    (r", strided<\[[^]]*\](, offset: \?)?>", ""),
    (r"(<tensor = memref<[^>]*>), swizzle = .*?>", r"\1, ...>"),
    # The instruction of inline PTX, without its lists of registers.
    (r'"\{\\0A\.reg .*?(wgmma\.mma_async[\w.]+) .*$', r'"\1 ..."'),
    (r"\{%r\d+(, %r\d+){8,}\}", "{...}"),
]

# Where a long line may be broken.
BREAKS = [
    r"ins\(",
    r"outs\(",
    r"acc\(",
    r"%arg\d+: (?:tensor|memref)",
    r"storage =",
    r"indexing_maps =",
    r"schedule =",
    r"transfers =",
    r"pipeline =",
    r"stages =",
    r"threads ?\(",
    r"blocks ?\(",
    r"threads in",
    r"dynamic_shared",
    r"args\(",
    r"shared_outs\(",
    r"to (?:tensor|memref)<",
    r"into (?:tensor|memref)<",
    r": tensor<",
    r": memref<",
    r": vector<",
    r"-> ",
]

# Where a line is cut.
WIDTH = 118

# Copies of operand tiles, and products of them.
TILE_OPS = r"nm_sparse\.(async|tile)|nm_tile\."

# Which lines of the IR after a stage the walk shows: the first LIMIT matches of
# each pattern. Skipped lines become one "...".
SHOWN = {
    "front": [r"func\.func", r"linalg\.fill", r"nm_sparse\.matmul", r"linalg\.generic"],
    "specialize": [
        r"tensor\.dim %arg0",
        r"token_class",
        r"index_switch",
        r"^    (case|default)",
        r"call @",
        r"func\.func private",
    ],
    "schedule": [r"nm_sparse\.matmul"],
    "tile": [
        r"scf\.forall \(",
        r"affine\.min",
        r"nm_tile\.k_loop",
        r"tensor\.extract_slice",
        r"nm_sparse\.matmul",
        r"nm_tile\.yield",
        r"linalg\.generic",
        r"scf\.forall\.in_parallel",
        r"parallel_insert_slice",
        r"mapping =",
    ],
    "promote": [
        r"alloc_tensor",
        TILE_OPS,
        r"vector\.transfer",
    ],
    "vectorize": [
        r"dense<0",
        r"nm_tile\.k_loop",
        r"nm_(sparse\.tile_|tile\.)matmul",
        r"vector\.transfer",
        r"arith\.\w+ .*: vector",
    ],
    "bufferize": [
        r"func\.func",
        r"memref\.alloc",
        r"scf\.forall \(",
        TILE_OPS,
        r"vector\.transfer_write",
        r"mapping =",
    ],
    "map": [
        r"affine\.(apply.*ceildiv|min)",
        r"gpu\.launch",
        r"affine\.apply.*arg[45]\]*$",
    ],
    "pipeline": [
        r"memref\.alloc\(\) .*workgroup",
        TILE_OPS,
        r"nvvm\.cp\.async",
        r"gpu\.barrier",
        r"scf\.for ",
        r"scf\.if",
        r"scf\.yield",
        r"vector\.transfer_write",
    ],
    "threads": [
        r"gpu\.launch",
        r"gpu\.dynamic_shared",
        r"memref\.view",
        r"nvvm\.cp\.async\.wait",
        r"scf\.for ",
        r"nvgpu\.device_async_copy",
        r"nvgpu\.ldmatrix",
        r"nvgpu\.mma\.sync",
        r"vector\.(store|transfer_write)|memref\.store .*arg",
    ],
    "nvvm": [
        r"func\.func @",
        r"gpu\.launch_func",
        r"gpu\.module",
        r"llvm\.func",
        r"nvvm\.cp\.async\.shared",
        r"nvvm\.cp\.async\.(commit|wait)",
        r"nvvm\.barrier",
        r"nvvm\.ldmatrix",
        r"nvvm\.mma\.sync",
    ],
    "ptx": [
        r"^\.(version|target|extern)",
        r"\.entry",
        r"^\.(maxntid|minnctapersm)",
        r"cp\.async\.c[ag]",
        r"cp\.async\.(commit|wait)",
        r"bar\.sync",
        r"ldmatrix",
        r"mma\.sync",
        r"st\.global",
    ],
}
SHOWN |= {
    "shuffled front": [
        r"func\.func",
        r"%arg\d: tensor",
        r"nm_sparse\.matmul",
        r"nm_sparse\.permute",
        r"linalg\.generic",
        r"arith\.\w+ .*f",
    ],
    "shuffled schedule": [r"nm_sparse\.matmul"],
    "shuffled tile": [
        r"nm_sparse\.permute",
        r"scf\.forall \(",
        r"tensor\.extract %",
        r"affine\.apply .*\(s0 \* 128 \+ s1",
        r"nm_tile\.k_loop",
        r"tensor\.extract_slice %extracted_slice",
        r"nm_sparse\.matmul",
        r"tensor\.extract_slice .*xf32> to tensor<128xf32>",
        r"parallel_insert_slice",
        r"mapping =",
    ],
    "shuffled bufferize": [
        r"memref\.alloc\(\) .*2048xf16>$",
        r"nm_tile\.",
        r"scf\.forall \(",
        r"vector\.transfer",
    ],
    "shuffled threads": [
        r"gpu\.launch",
        r"nm_tile\.read_only_load %arg4",
        r"memref\.load .*4096xf32",
        r"vector\.store .*4096x2048xf16",
    ],
    "shuffled ptx": [
        r"\.entry",
        r"ld\.global\.nc",
        r"st\.global\.v4",
    ],
    "decode layout": [r"func\.func", r"%arg\d: tensor", r"nm_sparse\.matmul"],
    "decode schedule": [r"nm_sparse\.matmul"],
    "decode tile": [
        r"scf\.forall \(",
        r"nm_tile\.k_loop",
        r"tensor\.extract_slice %arg",
        r"nm_sparse\.matmul",
        r"mapping =",
    ],
    "decode promote": [
        r"nm_tile\.k_loop",
        r"tensor\.extract_slice %extracted",
        r"nm_tile\.(matmul|yield|sum_warps)",
        r"vector\.transfer_write",
    ],
    "decode threads": [
        r"gpu\.launch",
        r"nm_tile\.read_only_load once",
        r"bfind",
        r"gpu\.shuffle",
        r"nm_tile\.read_only_load %",
        r"math\.fma",
        r"memref\.alloc\(\)|memref\.view",
        r"gpu\.barrier",
        r"scf\.(if|for)",
    ],
    "decode ptx": [
        r"\.entry",
        r"^\.(maxntid|minnctapersm)",
        r"ld\.global\.nc",
        r"bfind",
        r"shfl",
        r"fma\.rn",
        r"bar\.sync",
        r"st\.global",
    ],
}
# The code of threads that prepares metadata and multiplies.
METADATA = [
    r"llvm\.load .*ptr<3>.* -> i32",
    r"nvvm\.prmt",
    r"bitreverse",
    r"nvvm\.wgmma",
    r"wgmma\.mma_async",
    r"nm_tile\.product_wait",
]
SHOWN |= {
    "sparse layout": [r"func\.func", r"%arg\d: tensor", r"nm_sparse\.matmul"],
    "sparse schedule": [r"nm_sparse\.matmul"],
    "sparse tile": [
        r"scf\.forall \(",
        r"nm_tile\.k_loop",
        r"tensor\.extract_slice %(arg|extracted)",
        r"nm_sparse\.matmul",
        r"mapping =",
    ],
    "sparse promote": [r"nm_tile\.", r"vector\.transfer_write"],
    "sparse pipeline": [
        r"gpu\.launch",
        r"memref\.alloc\(\).*workgroup",
        r"setmaxregister",
        r"scf\.for ",
        r"try_wait",
        TILE_OPS,
        r"nvvm\.mapa",
        r"nvvm\.mbarrier\.arrive",
    ],
    "sparse threads": METADATA,
    "sparse ptx": [
        r"\.entry",
        r"^\.maxntid",
        r"try_wait",
        r"ld\.shared\.b32",
        r"prmt|brev",
        r"wgmma",
        r"st\.shared\.b32",
        r"cp\.async\.bulk\.tensor",
    ],
    "levels layout": [r"func\.func", r"%arg\d: tensor", r"nm_sparse\.matmul"],
    "levels schedule": [r"nm_sparse\.matmul"],
    "levels promote": [
        r"tensor\.extract_slice .*xi8>",
        r"nm_tile\.",
        r"vector\.transfer_write",
    ],
    "levels pipeline": [
        r"memref\.alloc\(\).*workgroup",
        r"scf\.for ",
        r"try_wait",
        TILE_OPS,
        r"cp\.async",
        r"nvvm\.mbarrier\.arrive",
    ],
    "levels threads": [
        r"try_wait",
        r"fence\.proxy",
        *METADATA,
        r"memref\.load .*xi8.*workgroup",
        r"nvgpu\.device_async_copy",
        r"nvvm\.cp\.async",
    ],
    "levels ptx": [
        r"\.entry",
        r"^\.maxntid",
        r"fence\.proxy",
        r"wgmma",
        r"ld\.shared\.b8",
        r"cp\.async\.cg",
        r"cp\.async\.bulk\.tensor",
        r"cp\.async\.mbarrier",
    ],
}
LIMIT = {
    "pipeline": 99,
    "threads": 2,
    "nvvm": 1,
    "ptx": 2,
    "shuffled threads": 2,
    "shuffled ptx": 2,
    "decode threads": 3,
    "decode ptx": 3,
    "sparse threads": 4,
    "sparse ptx": 4,
    "levels threads": 2,
    "levels ptx": 2,
}


def shorten(line):
    """The line in pieces that fit: broken before operands, then cut."""
    for pattern, replacement in SHORTER:
        line = re.sub(pattern, replacement, line)
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    pieces = [""]
    for token in re.split(rf"(?= (?:{'|'.join(BREAKS)}))", line):
        if not pieces[-1] or len(pieces[-1] + token) <= WIDTH:
            pieces[-1] += token
        else:
            pieces.append(indent + token.lstrip())
    return [
        piece.rstrip() if len(piece) <= WIDTH else piece[: WIDTH - 4].rstrip() + " ..."
        for piece in pieces
    ]


def select(text, stage):
    counts, lines, skipped = {}, [], False
    for line in text.splitlines():
        line = line.replace("\t", "  ").rstrip()
        found = next((p for p in SHOWN[stage] if re.search(p, line)), None)
        if found is not None:
            counts[found] = counts.get(found, 0) + 1
            if counts[found] > LIMIT.get(stage, 8):
                found = None
        if found is None:
            skipped = skipped or line.strip() not in ("", "{", "}")
            continue
        if skipped and lines:
            indent = len(line) - len(line.lstrip())
            lines.append(" " * indent + "...")
        skipped = False
        # The schedule is shown once, where it is chosen.
        if not stage.endswith("schedule"):
            line = re.sub(r"schedule = <([^<>]|<[^<>]*>)*>", "schedule = ...", line)
        lines += shorten(line)
    widths = [len(line) - len(line.lstrip()) for line in lines]
    return "\n".join(line[min(widths, default=0) :] for line in lines)
