//===- PatchChecks.cpp - what is legal of patches of an image -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PatchChecks.h"

using namespace mlir;
using namespace mlir::nm_sparse;

LogicalResult nm_sparse::verifySliceSize(Operation *op,
                                         std::optional<PatchesAttr> patches,
                                         size_t numbers) {
  if (numbers == (patches ? 4 : 0))
    return success();
  return op->emitOpError("slice must be first row, first column, rows and "
                         "columns with patches, and empty without, got ")
         << numbers << " numbers";
}

LogicalResult nm_sparse::verifyImageSizes(Operation *op, PatchesAttr patches,
                                          ShapedType image) {
  for (char letter : StringRef("chw"))
    if (image.isDynamicDim(patches.getImageDim(letter)))
      return op->emitOpError("image must have static sizes but for its batch, "
                             "got ")
             << image;
  return success();
}
