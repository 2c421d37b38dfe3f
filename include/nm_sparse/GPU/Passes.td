//===- Passes.td - kernels and host code on the way out ----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_PASSES_TD
#define NM_SPARSE_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"
include "nm_sparse/GPU/LaunchPasses.td"

def NMSparseInsertDeviceCopiesPass
    : Pass<"nm-sparse-insert-device-copies", "::mlir::ModuleOp"> {
  let summary = "copy the host buffers of each kernel launch to the device";
  let description = [{
    For callers whose buffers lie in host memory. Each memref operand of a
    `gpu.launch_func` is replaced by a device buffer of the same shape: allocated
    before the first launch of the block that needs it, filled when the host's
    content is newer, copied back before the host next reads it (or the block
    ends) when a kernel wrote it, and freed at the end of the block. A buffer
    that stays valid between two launches is not copied again.

    With `host-memory=false` the caller passes device buffers: what only kernels
    use is allocated on the device, and constants are still copied there. CPU
    operations are left alone: where some remain, the caller's buffers must be
    memory that the CPU can reach as well, such as managed memory.

    What it emits is synchronous; `--gpu-async-region` makes chains of it, which
    is what `--gpu-to-llvm` accepts.
  }];
  let options = [Option<"hostMemory", "host-memory", "bool", "true",
                        "callers pass host memory">];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect"];
}

def NMSparseLowerBF16MmaPass
    : Pass<"nm-sparse-lower-bf16-mma", "::mlir::gpu::GPUModuleOp"> {
  let summary = "bf16 nvgpu.mma.sync to nvvm.mma.sync";
  let description = [{
    Lowers each `nvgpu.mma.sync` with bf16 operands, which
    `--convert-nvgpu-to-nvvm` does not know, to `nvvm.mma.sync`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::vector::VectorDialect"];
}

def NMSparseOrderMetadataPass
    : Pass<"nm-sparse-order-metadata", "::mlir::gpu::GPUModuleOp"> {
  let summary = "say that metadata of nvvm.mma.sp.sync is ordered";
  let description = [{
    Sets `orderedMetadata` of each `nvvm.mma.sp.sync` in a module whose target has
    PTX 8.5 or newer, which knows it: the two rows that our metadata names always
    increase. Chips after sm_90 sort what does not say so, in several
    instructions; on older ones both are the same instruction.
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

def NMSparseRaisePTXVersionPass
    : Pass<"nm-sparse-raise-ptx-version", "::mlir::gpu::GPUModuleOp"> {
  let summary = "give targets the PTX version that products of 8-bit floats need";
  let description = [{
    The targets of a module that has `mma.sync` or `mma.sp.sync` of `e4m3` or
    `e5m2`, which are inline PTX, get PTX 8.4 if theirs is older: ptxas and the
    driver refuse the instructions otherwise. Other modules keep a version that
    older drivers read.
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

def NMSparseLowerTensorMapsPass : Pass<"nm-sparse-lower-tensor-maps"> {
  let summary = "tensor maps that upstream does not make, to those that it does";
  let description = [{
    Runs before `--convert-nvgpu-to-nvvm`. A map with `nm_tile.im2col`, of which
    that would make a tiled one, becomes a call of
    `mgpuTensorMapEncodeIm2colMemref` of the runtime. Of 8-bit types it knows `ui8`
    alone, and gives any other type the number of some wider one: the tensor of
    each `nvgpu.tma.create.descriptor` of `i8`, `f8E4M3FN` or `f8E5M2` becomes one
    of `ui8` by a `builtin.unrealized_conversion_cast`, which goes away with the
    conversion to LLVM: the tensor memory accelerator copies bytes as they are.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def NMSparseLowerF8Pass : Pass<"nm-sparse-lower-f8"> {
  let summary = "conversions of 8-bit floats to integer arithmetic";
  let description = [{
    Rewrites each `arith.extf` from, and each `arith.truncf` to, `f8E4M3FN` and
    `f8E5M2`, which LLVM has no types for. Results are exact, or the nearest
    number, of two as near the even one; what is larger than all finite ones
    becomes the NaN of `f8E4M3FN` and the infinity of `f8E5M2`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def NMSparseApproximateMathPass
    : Pass<"nm-sparse-approximate-math", "::mlir::func::FuncOp"> {
  let summary = "math functions as exact as a 16-bit result needs";
  let description = [{
    In launches, replaces f32 functions whose every use is rounded to 16 bits
    by ways that keep a relative error (products, quotients, limits; not sums,
    which can cancel, but for `1 + exp`), or that are marked `fastmath<afn>`.
    GELU and sigmoids also count as rounded where data, such as a residual, is
    added to them:

    * GELU, of erf or of tanh, by a polynomial and one `exp2`: absolute error at
      most 2.1e-5, 9 or 10 instructions;
    * with `packed`, GELU that is rounded to f16 by arithmetic of f16 in pairs: 7
      instructions for two. Its argument is rounded to f16 first, as it is where
      GELU is a kernel of its own. Of such an argument, positive results are
      within 2.8 units in the last place (root mean square 0.5, where rounding
      the exact ones has 0.22), negative ones within 5.1e-4 (1e-4);
    * other `erf` and `tanh` by the GPU's `tanh`, relative error 2^-11;
    * `exp` by the GPU's `exp2`, and a division by 1 + exp (a sigmoid, SiLU) by
      the GPU's reciprocal, each of relative error 2^-20 where the result is not
      negligible.

    What the GPU computes is marked `fastmath<afn>`, which --nm-sparse-lower-math
    knows. NaN stays NaN. A result that stays f32 stays as exact as it was.
  }];
  let options = [Option<"packed", "packed", "bool", "true",
                        "compute GELU of f16 results in pairs of f16">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def NMSparseExpandMathPass : Pass<"nm-sparse-expand-math"> {
  let summary = "math functions in terms of others";
  let description = [{
    Rewrites `absi`, `clampf`, `isnan`, `isinf`, `isfinite`, `isnormal`, `sincos`
    and, unless it is of f64, `log10` and `arith.remf` in terms of functions that
    both a GPU and the host have. `remf` is exact for quotients below 2^29.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def NMSparseLowerMathPass : Pass<"nm-sparse-lower-math"> {
  let summary = "math functions without a device library";
  let description = [{
    Rewrites `math` functions that a GPU has no instruction for (`erf`, `exp`,
    `tanh`, `log`, ...) as polynomial approximations in f32, and the others as
    LLVM intrinsics that NVPTX knows, so that no device library is needed; those
    that are neither, such as `exp` of f64, are errors. Where
    `fastmath<afn>` allows it, `exp2`, `tanh` and `divf` of f32 become the one or
    two instructions that the GPU has for them.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def NMSparseExternSharedMemoryPass
    : Pass<"nm-sparse-extern-shared-memory", "::mlir::gpu::GPUModuleOp"> {
  let summary = "make dynamic shared memory external and aligned";
  let description = [{
    `gpu.dynamic_shared_memory` becomes an internal global that is 16-byte
    aligned. CUDA expects an external one, and swizzled tiles need 1024 bytes:
    gives each zero-sized global of shared memory external linkage and at least
    that alignment.
  }];
  let options = [Option<"alignment", "alignment", "unsigned", "1024",
                        "bytes that the start of shared memory is aligned to">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def NMSparseCompileKernelsPass
    : Pass<"nm-sparse-compile-kernels", "::mlir::ModuleOp"> {
  let summary = "embed kernels as PTX";
  let description = [{
    Stands in for `--gpu-module-to-binary=format=isa`: each `gpu.module` in the
    NVVM dialect with an `#nvvm.target` becomes a `gpu.binary` whose one object,
    in assembly format and with a zero byte at its end, is its PTX. The kernels of
    a module are compiled each for itself, by as many threads as the context has;
    the text does not depend on their number. At optimization level 3 LLVM runs
    those of its passes that kernels gain by.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def NMSparseLowerTransposePass
    : Pass<"nm-sparse-lower-transpose", "::mlir::func::FuncOp"> {
  let summary = "turn each linalg.transpose of buffers into a kernel";
  let description = [{
    A `linalg.transpose` on memrefs that exchanges the last dimension with
    another one becomes a `gpu.launch`. Legal are ranks 2 and 3 and elements of 8,
    16 or 32 bits; others, and those inside of a kernel, are left alone.

    Each thread reads a block of 16 x 16 elements of 8 bits, 8 x 8 of 16, or 4 x 4 of
    32, as rows of 16 bytes, exchanges rows and columns in registers, and writes rows
    of 16 bytes. Where rows of the result end in padding that the program owns,
    the blocks there are whole, too. Rows of the source that are not a multiple
    of 16 bytes apart are read element by element; blocks at other ragged edges,
    and all where those of the result are not, are copied element by element.

    ```mlir
    // Before
    linalg.transpose ins(%x : memref<?x4096xf16>) outs(%t : memref<4096x?xf16>)
      permutation = [1, 0]
    // After
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %rows, %gy = %c32, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      scf.if %whole {
        %0 = vector.load %x[%row, %column] : memref<?x4096xf16>, vector<8xf16>
        ...
      } else {
        ...
      }
      gpu.terminator
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def NMSparseLowerExpandShapePass : Pass<"nm-sparse-lower-expand-shape"> {
  let summary = "lower reshapes that make several dynamic sizes of one";
  let description = [{
    Runs before `--expand-strided-metadata`, which knows at most one dynamic size
    in each group of dimensions that a `memref.expand_shape` makes, and crashes
    on a second one (batch and sequence, say). Such an op becomes
    `memref.reinterpret_cast` with the sizes that it says itself.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def NMSparseLoadAheadPass
    : Pass<"nm-sparse-load-ahead", "::mlir::func::FuncOp"> {
  let summary = "load what asynchronous copies are told one iteration ahead";
  let description = [{
    Where the asynchronous copies of a loop in a `gpu.launch` read their addresses
    from a buffer that the launch does not write, the loads of the next iteration
    are issued before the copies of this one.

    ```mlir
    // Before
    scf.for %i = %lb to %ub step %s {
      %row = memref.load %index[%i] : memref<?xi32>
      nvgpu.device_async_copy %x[%row] ...
    }
    // After
    %first = scf.if %any -> (i32) { memref.load %index[%lb] ... } else { 0 }
    scf.for %i = %lb to %ub step %s iter_args(%row = %first) -> (i32) {
      %next = scf.if %more -> (i32) { memref.load %index[%i + %s] ... } else { 0 }
      nvgpu.device_async_copy %x[%row] ...
      scf.yield %next
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def NMSparseAllocateSharedMemoryPass
    : Pass<"nm-sparse-allocate-shared-memory", "::mlir::func::FuncOp"> {
  let summary = "place the workgroup tiles of each launch in dynamic shared memory";
  let description = [{
    Replaces the `memref.alloc`s in workgroup memory of each `gpu.launch` by
    views of one window of dynamic shared memory and sets the launch's size. What
    is allocated behind a `memref.dealloc`, in its block or inside a later
    operation of it, may take the bytes that became free. Threads must not use a
    buffer that any of them has freed, so a barrier stands before.
  }];
  let options = [
    Option<"maxBytes", "max-bytes", "int64_t", /*default=*/"232448",
           "bytes of shared memory that a CTA may use (default: 227 KiB, sm_90)">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect"];
}

#endif // NM_SPARSE_GPU_PASSES_TD
