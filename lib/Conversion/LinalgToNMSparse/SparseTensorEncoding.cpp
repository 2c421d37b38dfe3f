//===- SparseTensorEncoding.cpp - encodings of upstream -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/SparseTensorEncoding.h"

#include "mlir/Dialect/SparseTensor/IR/SparseTensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// The encoding that `#sparse_tensor.encoding` spells when its levels are
/// `(i : dense, j floordiv m : dense, j mod m : structured[n, m])`, null when
/// they are others; failure, said of `op`, when there is no such n:m.
static FailureOr<EncodingAttr>
fromStructured(sparse_tensor::SparseTensorEncodingAttr sparse, Operation *op) {
  EncodingAttr none;
  AffineMap map = sparse.getDimToLvl();
  ArrayRef<sparse_tensor::LevelType> levels = sparse.getLvlTypes();
  if (!map || map.getNumDims() != 2 || map.getNumResults() != 3 ||
      levels.size() != 3 || !sparse_tensor::isDenseLT(levels[0]) ||
      !sparse_tensor::isDenseLT(levels[1]) ||
      !sparse_tensor::isNOutOfMLT(levels[2]))
    return none;
  auto output = dyn_cast<AffineDimExpr>(map.getResult(0));
  if (!output)
    return none;
  int64_t n = sparse_tensor::getN(levels[2]);
  int64_t m = sparse_tensor::getM(levels[2]);
  int64_t dim = 1 - output.getPosition(), one = 1;
  AffineExpr contracted = getAffineDimExpr(dim, map.getContext());
  if (map.getResult(1) != contracted.floorDiv(m) ||
      map.getResult(2) != contracted % m || m > EncodingAttr::kMaxWindowRows)
    return none;
  auto emitError = [&] {
    return op->emitError() << "structured[" << n << ", " << m << "]: ";
  };
  // 0:0 would be an encoding of any distribution.
  if (n < 1) {
    emitError() << "n must be at least 1";
    return failure();
  }
  EncodingAttr encoding =
      EncodingAttr::getChecked(emitError, sparse.getContext(), n, m, one, one,
                               dim, OutputOrder::Identity);
  if (!encoding)
    return failure();
  return encoding;
}

LogicalResult nm_sparse::replaceSparseTensorEncodings(Operation *root) {
  bool bad = false;
  Operation *current = root;
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](sparse_tensor::SparseTensorEncodingAttr sparse)
          -> std::optional<std::pair<Attribute, WalkResult>> {
        FailureOr<EncodingAttr> encoding = fromStructured(sparse, current);
        bad |= failed(encoding);
        if (failed(encoding) || !*encoding)
          return std::nullopt;
        return std::make_pair(Attribute(*encoding), WalkResult::skip());
      });
  // The function comes before what is in it, and names the place of errors.
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    current = op;
    replacer.replaceElementsIn(op, /*replaceAttrs=*/true,
                               /*replaceLocs=*/false, /*replaceTypes=*/true);
  });
  return failure(bad);
}
