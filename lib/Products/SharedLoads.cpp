//===- SharedLoads.cpp - what a lane reads of a tile ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedLoads.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "nm_sparse/Dialect/NMTile/Utils/IndexMath.h"

using namespace mlir;
using namespace mlir::nm_sparse;

Value nm_sparse::getPointer(OpBuilder &b, Location loc, Value tile,
                            Value element) {
  IndexMath math(b, loc);
  int64_t bytes = cast<MemRefType>(tile.getType()).getElementTypeBitWidth() / 8;
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, tile);
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, tile);
  address = math.add(address,
                     math.mul(math.add(metadata.getOffset(), element), bytes));
  auto pointer = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
  address = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(b, loc, pointer, address);
}

Value nm_sparse::getPointer(OpBuilder &b, Location loc, Value tile,
                            ValueRange indices) {
  IndexMath math(b, loc);
  Value element = math.constant(0);
  auto [strides, offset] =
      cast<MemRefType>(tile.getType()).getStridesAndOffset();
  for (auto [index, stride] : llvm::zip_equal(indices, strides))
    element = math.add(element, math.mul(index, stride));
  return getPointer(b, loc, tile, element);
}

Value nm_sparse::loadAt(OpBuilder &b, Location loc, Value pointer,
                        int64_t bytes, Type type) {
  Value at =
      LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
  auto vector = dyn_cast<VectorType>(type);
  int64_t bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth()
                                     : vector.getNumElements() *
                                           vector.getElementTypeBitWidth();
  return LLVM::LoadOp::create(b, loc, type, at, bits / 8);
}
