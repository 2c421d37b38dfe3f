//===- Im2col.cpp - tensor maps of a convolution's input ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/GPU/Support/Im2col.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "nm_sparse/Base/Im2col.h"

using namespace mlir;
using namespace mlir::nm_sparse;
using llvm::ArrayRef;
using llvm::StringLiteral;

namespace {

/// One array of the dictionary.
struct Field {
  StringLiteral name;
  nms::Im2colRange legal;
};

} // namespace

static constexpr Field kLower = {"lower", nms::kIm2colCorners};
static constexpr Field kUpper = {"upper", nms::kIm2colCorners};
static constexpr Field kStrides = {"strides", nms::kIm2colStrides};

std::optional<Im2colBox>
nm_sparse::getIm2col(nvgpu::TmaCreateDescriptorOp map) {
  auto fields = map->getAttrOfType<DictionaryAttr>(kIm2colAttrName);
  if (!fields)
    return std::nullopt;
  auto get = [&](const Field &field) {
    return llvm::SmallVector<int64_t, 2>(
        fields.getAs<DenseI64ArrayAttr>(field.name).asArrayRef());
  };
  return Im2colBox{get(kLower), get(kUpper), get(kStrides)};
}

void nm_sparse::setIm2col(nvgpu::TmaCreateDescriptorOp map,
                          const Im2colBox &box) {
  Builder b(map.getContext());
  auto name = [&](const Field &field, ArrayRef<int64_t> numbers) {
    return b.getNamedAttr(field.name, b.getDenseI64ArrayAttr(numbers));
  };
  map->setAttr(
      kIm2colAttrName,
      b.getDictionaryAttr({name(kLower, box.lower), name(kUpper, box.upper),
                           name(kStrides, box.strides)}));
}

static LogicalResult verifyField(Operation *op, DictionaryAttr fields,
                                 const Field &field) {
  Attribute value = fields.get(field.name);
  auto fail = [&](auto found) {
    return op->emitError("'")
           << kIm2colAttrName << "' must have '" << field.name
           << "', an array<i64> of two numbers, for h and w, from "
           << field.legal.least << " to " << field.legal.most << ", got "
           << found;
  };
  if (!value)
    return fail("none");
  auto numbers = dyn_cast<DenseI64ArrayAttr>(value);
  if (!numbers || numbers.size() != nms::kIm2colPixelRank)
    return fail(value);
  for (int64_t number : numbers.asArrayRef())
    if (!field.legal.contains(number))
      return fail(value);
  return success();
}

LogicalResult nm_sparse::verifyIm2col(Operation *op, Attribute attribute) {
  auto map = dyn_cast<nvgpu::TmaCreateDescriptorOp>(op);
  if (!map)
    return op->emitError("'")
           << kIm2colAttrName << "' belongs to an "
           << nvgpu::TmaCreateDescriptorOp::getOperationName();
  auto fields = dyn_cast<DictionaryAttr>(attribute);
  if (!fields || fields.size() != 3)
    return op->emitError("'")
           << kIm2colAttrName << "' must be a dictionary of '" << kLower.name
           << "', '" << kUpper.name << "' and '" << kStrides.name << "', got "
           << attribute;
  for (const Field &field : {kLower, kUpper, kStrides})
    if (failed(verifyField(op, fields, field)))
      return failure();
  MemRefType box = map.getTensorMap().getType().getTensor();
  if (box.getRank() != 2)
    return op->emitError("with '")
           << kIm2colAttrName
           << "' must have a box of rank 2, pixels and channels, got " << box;
  auto cast = map.getTensor().getDefiningOp();
  if (!cast || cast->getNumOperands() != 1)
    return success();
  auto tensor = dyn_cast<MemRefType>(cast->getOperand(0).getType());
  if (tensor && tensor.getRank() != nms::kIm2colRank)
    return op->emitError("with '")
           << kIm2colAttrName << "' must map a tensor of rank "
           << nms::kIm2colRank << ", images of (h, w, channels), got "
           << tensor;
  return success();
}
