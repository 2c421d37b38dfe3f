# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text of a kernel of one sparse product of tensor cores, in the form that
nm-opt --nm-sparse-to-nvvm=host-memory=true prints, with its operands as constants.
Operands lie in shared memory and registers as wgmma_sp and mma_sp have them."""

import struct

PIECE_WORDS, LINE_PIECES = 4, 8
REGISTERS = {"f16": "vector<2xf16>"}  # of A and B in mma.sp; others are words

HOST = """\
module attributes {{gpu.container_module}} {{
  memref.global "private" constant @input : memref<{words}xi32> = dense<"0x{data}">
  func.func @product() -> memref<{results}xi32> {{
    %c1 = arith.constant 1 : index
    %threads = arith.constant {threads} : index
    %input = memref.get_global @input : memref<{words}xi32>
    %result = memref.alloc() : memref<{results}xi32>
    %0 = gpu.wait async
    %in, %1 = gpu.alloc async [%0] () : memref<{words}xi32>
    %2 = gpu.memcpy async [%1] %in, %input : memref<{words}xi32>, memref<{words}xi32>
    %out, %3 = gpu.alloc async [%2] () : memref<{results}xi32>
    %4 = gpu.launch_func async [%3] @kernels::@kernel
        blocks in (%c1, %c1, %c1) threads in (%threads, %c1, %c1)
        args(%in : memref<{words}xi32>, %out : memref<{results}xi32>)
    %5 = gpu.memcpy async [%4] %result, %out
        : memref<{results}xi32>, memref<{results}xi32>
    %6 = gpu.dealloc async [%5] %in : memref<{words}xi32>
    %7 = gpu.dealloc async [%6] %out : memref<{results}xi32>
    gpu.wait [%7]
    return %result : memref<{results}xi32>
  }}
  gpu.module @kernels [#nvvm.target<chip = "sm_90a", features = "+ptx85">] {{
{globals}
    llvm.func @kernel(
        %in0: !llvm.ptr, %in: !llvm.ptr, %in2: i64, %in3: i64, %in4: i64,
        %out0: !llvm.ptr, %out: !llvm.ptr, %out2: i64, %out3: i64, %out4: i64)
        attributes {{gpu.kernel, nvvm.kernel}} {{
{body}
      llvm.return
    }}
  }}
}}
"""

COPY = """\
%pieces = llvm.mlir.constant({pieces} : i32) : i32
%shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
llvm.br ^copy(%t : i32)
^copy(%i: i32):
%more = llvm.icmp "ult" %i, %pieces : i32
llvm.cond_br %more, ^piece, ^multiply
^piece:
%from = llvm.getelementptr %in[%i] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xi32>
%to = llvm.getelementptr %shared[%i]
  : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
%piece = llvm.load %from {{alignment = 4 : i64}} : !llvm.ptr -> vector<4xi32>
llvm.store %piece, %to : vector<4xi32>, !llvm.ptr<3>
%next = llvm.add %i, %threads : i32
llvm.br ^copy(%next : i32)
^multiply:
nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>,
  space = #nvvm.shared_space<cta>}}
nvvm.barrier0
%address = llvm.ptrtoint %shared : !llvm.ptr<3> to i64
%four = llvm.mlir.constant(4 : i64) : i64
%start = llvm.lshr %address, %four : i64"""


class Body:
    """Lines of a kernel, whose input is the words of several arrays."""

    def __init__(self, threads):
        self.words, self.threads = [], threads
        self.lines = [
            "%t = nvvm.read.ptx.sreg.tid.x : i32",
            f"%threads = llvm.mlir.constant({threads} : i32) : i32",
        ]

    def emit(self, text):
        self.lines += text.splitlines()

    def load(self, name, words, type_="i32"):
        """The names of what each thread has of `words`."""
        count, first = len(words) // self.threads, len(self.words)
        self.words += words
        self.emit(
            f"%{name}_n = llvm.mlir.constant({count} : i32) : i32\n"
            f"%{name}_t = llvm.mul %t, %{name}_n : i32\n"
            f"%{name}_p = llvm.getelementptr %in[%{name}_t]"
            " : (!llvm.ptr, i32) -> !llvm.ptr, i32"
        )
        for i in range(count):
            self.emit(
                f"%{name}_p{i} = llvm.getelementptr %{name}_p[{first + i}]"
                " : (!llvm.ptr) -> !llvm.ptr, i32\n"
                f"%{name}{i} = llvm.load %{name}_p{i} : !llvm.ptr -> {type_}"
            )
        return [f"%{name}{i}" for i in range(count)]

    def store(self, count, type_, struct_type):
        """All of `%d` to the thread's place in the result."""
        self.emit(
            f"%out_n = llvm.mlir.constant({count} : i32) : i32\n"
            "%out_t = llvm.mul %t, %out_n : i32"
        )
        for i in range(count):
            self.emit(
                f"%d{i} = llvm.extractvalue %d[{i}] : {struct_type}\n"
                f"%out_p{i} = llvm.getelementptr %out[%out_t]"
                f" : (!llvm.ptr, i32) -> !llvm.ptr, {type_}\n"
                f"%out_q{i} = llvm.getelementptr %out_p{i}[{i}]"
                f" : (!llvm.ptr) -> !llvm.ptr, {type_}\n"
                f"llvm.store %d{i}, %out_q{i} : {type_}, !llvm.ptr"
            )

    def finish(self, results, shared_pieces=0):
        shared = (
            "    llvm.mlir.global external @shared() {addr_space = 3 : i32, "
            "alignment = 1024 : i64} "
            f": !llvm.array<{shared_pieces} x vector<4xi32>>"
        )
        return HOST.format(
            words=len(self.words),
            data=struct.pack(f"<{len(self.words)}I", *self.words).hex(),
            results=results,
            threads=self.threads,
            globals=shared if shared_pieces else "",
            body="\n".join(
                " " * (4 if line.startswith("^") else 6) + line for line in self.lines
            ),
        )


def make_struct(type_, count):
    return f"!llvm.struct<({', '.join([type_] * count)})>"


def name_sum(element):
    return "f32" if element.sum == "f32" else "i32"


def wgmma(product, operands, rng):
    """A is one of two tiles of 64 outputs, B the rows of one of two products."""
    element, columns = product.element, product.columns
    depth, tiles = element.rows, 2
    tile, part = rng.randrange(tiles), rng.randrange(2)
    outputs = tiles * product.rows
    body = Body(threads=128)
    a = operands.core_matrices(tile, tiles)
    b = operands.swizzled(part, product.transposed)
    body.words += a + b
    pieces = len(body.words) // PIECE_WORDS
    body.emit(COPY.format(pieces=pieces))
    lines = 2 * depth if product.transposed else columns
    distance = LINE_PIECES * depth if product.transposed else LINE_PIECES // 2
    a_fields = outputs << 16 | 8 << 32
    b_fields = lines * LINE_PIECES << 16 | 8 * LINE_PIECES << 32 | 1 << 62
    for name, fields in (
        ("a", a_fields + tile * product.rows),
        ("b", b_fields + len(a) // PIECE_WORDS + part * distance),
    ):
        body.emit(
            f"%{name}_fields = llvm.mlir.constant({fields} : i64) : i64\n"
            f"%{name} = llvm.add %start, %{name}_fields : i64"
        )
    sums = name_sum(element)
    metadata = body.load("e", operands.metadata(product.selector))
    c = body.load("c", operands.accumulators(operands.c), sums)
    count = len(c)
    # As emitWarpgroupProduct writes it.
    flags = f"{product.selector}, p"
    if element.sum == "f32":
        flags += ", 1, 1"
    if element.bits == 16:
        flags += f", 0, {int(product.transposed)}"
    registers = ", ".join(f"${i}" for i in range(count))
    mnemonic = (
        f"wgmma.mma_async.sp.sync.aligned.m64n{columns}k{depth}."
        f"{element.sum}.{product.type}.{product.type}"
    )
    text = (
        f"{{\\0A.reg .pred p;\\0Asetp.ne.b32 p, ${2 * count + 3}, 0;\\0A{mnemonic} "
        f"{{{registers}}}, ${2 * count}, ${2 * count + 1}, ${2 * count + 2}, "
        f"{flags};\\0A}}"
    )
    kind = "=f" if sums == "f32" else "=r"
    constraints = [kind] * count + [str(i) for i in range(count)]
    constraints += ["l", "l", "r", "n"]
    types = [sums] * count + ["i64", "i64", "i32", "i32"]
    struct_type = make_struct(sums, count)
    body.emit(
        "%one = llvm.mlir.constant(1 : i32) : i32\n"
        "nvvm.wgmma.fence.aligned\n"
        f'%d = llvm.inline_asm has_side_effects "{text}", "{",".join(constraints)}" '
        f"{', '.join([*c, '%a', '%b', *metadata, '%one'])} : "
        f"({', '.join(types)}) -> {struct_type}\n"
        "nvvm.wgmma.commit.group.sync.aligned\n"
        "nvvm.wgmma.wait.group.sync.aligned 0"
    )
    body.store(count, sums, struct_type)
    return body.finish(count * body.threads, pieces)


def mma(product, operands, _):
    element = product.element
    body = Body(threads=32)
    register, sums = REGISTERS.get(product.type, "i32"), name_sum(element)
    a = body.load("a", operands.fragments(operands.values, 4), register)
    b = body.load("b", operands.fragments(operands.b, 4), register)
    c = body.load("c", operands.accumulators(operands.c), sums)
    metadata = body.load("e", operands.metadata(product.selector))
    overflow, types = "", ""
    if element.sum == "s32":
        overflow = "intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>, "
    if register == "i32":
        types = (
            f"multiplicandAPtxType = #nvvm.mma_type<{product.type}>, "
            f"multiplicandBPtxType = #nvvm.mma_type<{product.type}>, "
        )
    struct_type = make_struct(sums, len(c))
    body.emit(
        f"%selector = llvm.mlir.constant({product.selector} : i32) : i32\n"
        f"%d = nvvm.mma.sp.sync A[{', '.join(a)}] B[{', '.join(b)}] "
        f"C[{', '.join(c)}] sparseMetadata[{metadata[0]}] selector[%selector] "
        f"{{{overflow}{types}orderedMetadata, "
        f"shape = #nvvm.shape<m = 16, n = 8, k = {element.rows}>}} "
        f": ({register}, {register}, {sums}) -> {struct_type}"
    )
    body.store(len(c), sums, struct_type)
    return body.finish(len(c) * body.threads)


TEXTS = {"wgmma": wgmma, "mma": mma}
