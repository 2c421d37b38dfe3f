//===- KMajorPacking.cpp - dense weights to values along k ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "nm_sparse/Dialect/NMSparse/IR/PackSpec.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Writes the rows of `from`, elements of `bytes`, as columns of `to`.
static void transpose(ArrayRef<char> from, ArrayRef<int64_t> fromShape,
                      MutableArrayRef<char> to, ArrayRef<int64_t> toShape,
                      int64_t bytes) {
  int64_t rows = fromShape.end()[-2], columns = fromShape.end()[-1];
  int64_t pitch = toShape.back();
  int64_t batch = fromShape.size() == 3 ? fromShape.front() : 1;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        std::copy_n(from.data() + ((b * rows + row) * columns + column) * bytes,
                    bytes,
                    to.data() + ((b * columns + column) * pitch + row) * bytes);
}

/// The canonical form, with its values transposed.
FailureOr<SmallVector<PackedComponent>>
KMajorAttr::pack(RankedTensorType weight, ArrayRef<char> dense,
                 function_ref<InFlightDiagnostic()> emitError) const {
  FailureOr<SmallVector<PackedComponent>> canonical =
      getEncoding().pack(weight, dense, emitError);
  if (failed(canonical))
    return failure();
  SmallVector<PackedComponent> packed =
      allocateComponents(getComponents(weight));
  const PackedComponent &values = canonical->front();
  transpose(values.data, values.type.getShape(), packed.front().data,
            packed.front().type.getShape(),
            weight.getElementTypeBitWidth() / 8);
  for (size_t i = 1; i < packed.size(); ++i)
    packed[i] = std::move((*canonical)[i]);
  return packed;
}
