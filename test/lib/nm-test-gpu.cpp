//===- nm-test-gpu.cpp - passes on GPU code alone -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stand-in for another compiler on MLIR that takes our passes on GPU code: it
// links no dialect of ours, and nothing of sparsity.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "nm_sparse/GPU/Passes.h"

using namespace mlir;

int main(int argc, char **argv) {
  DialectRegistry registry;
  registry
      .insert<affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
              gpu::GPUDialect, LLVM::LLVMDialect, linalg::LinalgDialect,
              math::MathDialect, memref::MemRefDialect, NVVM::NVVMDialect,
              nvgpu::NVGPUDialect, scf::SCFDialect, vector::VectorDialect>();
  nm_sparse::registerNMSparseGPUPasses();
  return asMainReturnCode(
      MlirOptMain(argc, argv, "nm_sparse passes on GPU code\n", registry));
}
