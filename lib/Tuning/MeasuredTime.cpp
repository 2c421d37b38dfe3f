//===- MeasuredTime.cpp - the time of a schedule that was measured --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Tuning/MeasuredTime.h"

#include "mlir/IR/Builders.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static constexpr StringLiteral kName = "nm_tile.measured";
static constexpr StringLiteral kTokens = "tokens", kUs = "us",
                               kDenseUs = "dense_us";

void MeasuredTime::set(MatmulOp op, const TunedEntry &entry) {
  Builder b(op.getContext());
  op->setDiscardableAttr(
      kName,
      b.getDictionaryAttr(
          {b.getNamedAttr(kTokens, b.getI64IntegerAttr(entry.problem.tokens)),
           b.getNamedAttr(kUs, b.getF64FloatAttr(entry.us)),
           b.getNamedAttr(kDenseUs, b.getF64FloatAttr(entry.denseUs))}));
}

std::optional<MeasuredTime> MeasuredTime::get(MatmulOp op) {
  auto said = dyn_cast_or_null<DictionaryAttr>(op->getDiscardableAttr(kName));
  if (!said)
    return std::nullopt;
  auto count = said.getAs<IntegerAttr>(kTokens);
  auto us = said.getAs<FloatAttr>(kUs), dense = said.getAs<FloatAttr>(kDenseUs);
  if (!count || !us || !dense)
    return std::nullopt;
  return MeasuredTime{us.getValueAsDouble() * 1e-6,
                      dense.getValueAsDouble() * 1e-6, count.getInt()};
}

std::optional<MeasuredTime> MeasuredTime::get(MatmulOp op, int64_t tokens) {
  std::optional<MeasuredTime> measured = get(op);
  return measured && measured->tokens == tokens ? measured : std::nullopt;
}
