//===- Im2col.h - tensor maps of a convolution's input ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor map in mode im2col, which cuTensorMapEncodeIm2col makes, is an
// nvgpu.tma.create.descriptor with one more attribute: upstream knows the tiled
// mode alone. The box of its type is the pixels of one copy, and their
// channels.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_GPU_SUPPORT_IM2COL_H
#define NM_SPARSE_GPU_SUPPORT_IM2COL_H

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace mlir::nm_sparse {

/// On an nvgpu.tma.create.descriptor, a dictionary of the fields of Im2colBox.
inline constexpr llvm::StringLiteral kIm2colAttrName = "nm_tile.im2col";

/// Which pixels of an image a copy goes over, of dimensions (h, w): from
/// `lower` to `upper` beyond the last one, in steps of `strides`.
struct Im2colBox {
  llvm::SmallVector<int64_t, 2> lower, upper, strides;
};

/// How `map` goes over images; none where it is tiled.
std::optional<Im2colBox> getIm2col(nvgpu::TmaCreateDescriptorOp map);

void setIm2col(nvgpu::TmaCreateDescriptorOp map, const Im2colBox &box);

/// Checks what is named kIm2colAttrName on `op`.
LogicalResult verifyIm2col(Operation *op, Attribute attribute);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_GPU_SUPPORT_IM2COL_H
