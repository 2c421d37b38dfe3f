//===- SparseTensorEncoding.cpp - encodings of upstream -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bufferization drops the encoding of any tensor, so what is not understood
// here would be computed densely without a word. It is an error instead.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Conversion/SparseTensorEncoding.h"
#include "nm_sparse/Conversion/Passes.h"

#include "mlir/Dialect/SparseTensor/IR/SparseTensor.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/PatternMatch.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {
#define GEN_PASS_DEF_CONVERTSPARSETENSORTONMSPARSEPASS
#include "nm_sparse/Conversion/Passes.h.inc"
} // namespace mlir::nm_sparse

using namespace mlir;
using namespace mlir::nm_sparse;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The dimension that `map` splits into windows of `m`, when the last level is
/// the place in the window and the others are, in any order, the number of the
/// window and all other dimensions.
static std::optional<unsigned> getSplitDim(AffineMap map, int64_t m) {
  unsigned dims = map.getNumDims();
  if (map.getNumResults() != dims + 1)
    return std::nullopt;
  for (unsigned dim = 0; dim < dims; ++dim) {
    AffineExpr split = getAffineDimExpr(dim, map.getContext());
    if (map.getResults().back() != split % m)
      continue;
    for (unsigned level = 0; level < dims; ++level) {
      AffineExpr expr = getAffineDimExpr(level, map.getContext());
      if (!llvm::is_contained(map.getResults().drop_back(),
                              level == dim ? expr.floorDiv(m) : expr))
        return std::nullopt;
    }
    return dim;
  }
  return std::nullopt;
}

/// Our encoding of `type`, whose own may be one of `sparse_tensor`.
static FailureOr<EncodingAttr>
translate(RankedTensorType type, function_ref<InFlightDiagnostic()> emitError) {
  auto sparse =
      dyn_cast<sparse_tensor::SparseTensorEncodingAttr>(type.getEncoding());
  if (!sparse)
    return emitError() << "it is of another kind";
  ArrayRef<sparse_tensor::LevelType> levels = sparse.getLvlTypes();
  // Upstream lets it be the last level only, and all others dense.
  if (levels.empty() || !sparse_tensor::isNOutOfMLT(levels.back()))
    return emitError() << "none of its levels is structured[n, m]";
  int64_t n = sparse_tensor::getN(levels.back());
  int64_t m = sparse_tensor::getM(levels.back());
  AffineMap map = sparse.getDimToLvl();
  std::optional<unsigned> dim =
      map ? getSplitDim(map, m) : std::optional<unsigned>();
  if (!dim)
    return emitError() << "its map does not split one dimension into floordiv "
                       << m << " and mod " << m
                       << " and leave the others as they are";
  if (sparse.getExplicitVal())
    return emitError() << "all that it keeps has one explicitVal, and a packed "
                          "weight stores values";
  auto emitNM = [&] {
    return emitError() << "structured[" << n << ", " << m << "]: ";
  };
  // 0:0 would be an encoding of any distribution.
  if (n < 1)
    return emitNM() << "n must be at least 1";
  int64_t one = 1;
  EncodingAttr encoding =
      EncodingAttr::getChecked(emitNM, type.getContext(), n, m, one, one,
                               int64_t(*dim), OutputOrder::Identity);
  if (!encoding || failed(encoding.verifyEncoding(
                       type.getShape(), type.getElementType(), emitError)))
    return failure();
  return encoding;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// The elements of `data` as those of a tensor of type `type`, which differs in
/// the encoding; null for data of an unknown kind.
static Attribute retype(ElementsAttr data, RankedTensorType type) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(data))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  if (auto sparse = dyn_cast<SparseElementsAttr>(data))
    return SparseElementsAttr::get(type, sparse.getIndices(),
                                   sparse.getValues());
  if (auto dense = dyn_cast<DenseElementsAttr>(data))
    return DenseElementsAttr::getFromRawBuffer(type, dense.getRawData());
  return {};
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {
/// Replaces the types of one module or function.
class Translation {
public:
  LogicalResult run(Operation *root);

private:
  /// The type with our encoding, or `type` after an error.
  RankedTensorType convert(RankedTensorType type);

  Operation *current = nullptr; ///< The subject of errors.
  bool bad = false;
};
} // namespace

RankedTensorType Translation::convert(RankedTensorType type) {
  if (!type.getEncoding() || getEncoding(type))
    return type;
  FailureOr<EncodingAttr> encoding = translate(type, [&] {
    return current->emitOpError("has a tensor of type ")
           << type
           << ", whose encoding is no n:m pattern (legal are "
              "#nm_sparse.encoding, and #sparse_tensor.encoding with the "
              "levels "
              "'o : dense, k floordiv m : dense, k mod m : structured[n, m]', "
              "at "
              "rank 3 also a batch 'b : dense', the dense ones in any order): ";
  });
  if (failed(encoding)) {
    bad = true;
    return type;
  }
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               *encoding);
}

LogicalResult Translation::run(Operation *root) {
  AttrTypeReplacer replacer;
  // A type is met once: later ones come from the replacer's cache, and an error
  // is not repeated for each use of a value.
  replacer.addReplacement(
      [&](RankedTensorType type) -> std::optional<std::pair<Type, WalkResult>> {
        return std::make_pair(Type(convert(type)), WalkResult::skip());
      });
  replacer.addReplacement(
      [&](ElementsAttr data)
          -> std::optional<std::pair<Attribute, WalkResult>> {
        auto type = dyn_cast<RankedTensorType>(data.getShapedType());
        if (!type)
          return std::nullopt;
        auto converted = cast<RankedTensorType>(replacer.replace(type));
        Attribute result = data;
        if (converted != type)
          result = retype(data, converted);
        if (!result) {
          bad = true;
          current->emitOpError("has elements of an unknown kind in a tensor of "
                               "type ")
              << type << "; legal are dense, sparse and dense_resource ones";
          result = data;
        }
        return std::make_pair(result, WalkResult::skip());
      });
  // The function comes before what is in it, and names the place of errors.
  SmallVector<sparse_tensor::ConvertOp> conversions;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    current = op;
    replacer.replaceElementsIn(op, /*replaceAttrs=*/true,
                               /*replaceLocs=*/false, /*replaceTypes=*/true);
    if (auto conversion = dyn_cast<sparse_tensor::ConvertOp>(op))
      conversions.push_back(conversion);
  });
  if (bad)
    return failure();
  IRRewriter rewriter(root->getContext());
  for (sparse_tensor::ConvertOp op : conversions) {
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithNewOp<tensor::CastOp>(op, op.getType(),
                                                op.getSource());
  }
  return success();
}

LogicalResult nm_sparse::replaceSparseTensorEncodings(Operation *root) {
  return Translation().run(root);
}

namespace {
struct ConvertSparseTensorToNMSparse
    : public nm_sparse::impl::ConvertSparseTensorToNMSparsePassBase<
          ConvertSparseTensorToNMSparse> {
  void runOnOperation() override {
    if (failed(replaceSparseTensorEncodings(getOperation())))
      signalPassFailure();
  }
};
} // namespace
