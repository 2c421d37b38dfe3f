//===- Permutations.cpp - inputs that must be permutations ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nm_sparse.permute reads and writes at the places that its permutation names.
// Random numbers would name any, so nm-run draws a permutation for an argument
// that is read as one, and refuses whatever else it cannot be sure of.
//
//===----------------------------------------------------------------------===//

#include "Inputs/Permutations.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/FormatVariadic.h"
#include <random>

using namespace mlir;
using namespace mlir::nm_sparse;

std::vector<uint32_t> nm_sparse::drawPermutations(int64_t count, int64_t size,
                                                  uint64_t seed) {
  std::vector<uint32_t> numbers(count * size);
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t place = 0; place < size; ++place) {
      uint32_t *row = numbers.data() + i * size;
      row[place] = place;
      std::swap(row[place], row[random() % (place + 1)]);
    }
  return numbers;
}

static std::string toString(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static int64_t getLastSize(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

/// The source of `perm` behind casts, reshapes, and slices of some rows with
/// the whole last dimension.
static Value findSource(Value perm) {
  while (Operation *op = perm.getDefiningOp()) {
    if (!isa<tensor::CastOp, tensor::ExtractSliceOp, tensor::CollapseShapeOp,
             tensor::ExpandShapeOp>(op))
      break;
    Value source = op->getOperand(0);
    auto type = dyn_cast<RankedTensorType>(source.getType());
    bool isWhole =
        type && type.getRank() != 0 &&
        (isa<tensor::CastOp>(op) || (!type.isDynamicDim(type.getRank() - 1) &&
                                     getLastSize(source) == getLastSize(perm)));
    if (!isWhole)
      break;
    perm = source;
  }
  return perm;
}

/// Checks that each row of `numbers` holds every place once.
static llvm::Error checkNumbers(PermuteOp op, DenseIntElementsAttr numbers) {
  int64_t size = numbers.getType().getShape().back();
  llvm::SmallBitVector seen(size);
  for (auto [i, number] : llvm::enumerate(numbers.getValues<APInt>())) {
    int64_t place = number.getSExtValue();
    if (i % size == 0)
      seen.reset();
    bool isInside = place >= 0 && place < size;
    if (isInside && !seen.test(place)) {
      seen.set(place);
      continue;
    }
    return llvm::createStringError(llvm::formatv(
        "'{0}' op reads a constant as a permutation that holds "
        "{1} at place {2}, {3}: legal is each number from 0 to "
        "{4} once",
        op->getName(), place, i % size,
        isInside ? "for the second time" : "which is no place", size - 1));
  }
  return llvm::Error::success();
}

llvm::Expected<llvm::DenseSet<unsigned>>
nm_sparse::findPermutations(func::FuncOp entry) {
  llvm::DenseSet<unsigned> found;
  SmallVector<PermuteOp> ops;
  entry.walk([&](PermuteOp op) { ops.push_back(op); });
  for (PermuteOp op : ops) {
    Value source = findSource(op.getPerm());
    DenseIntElementsAttr numbers;
    if (matchPattern(source, m_Constant(&numbers))) {
      if (llvm::Error error = checkNumbers(op, numbers))
        return std::move(error);
      continue;
    }
    if (source.getDefiningOp<PackOp>())
      continue;
    auto argument = dyn_cast<BlockArgument>(source);
    if (!argument || argument.getOwner() != &entry.getBody().front())
      return llvm::createStringError(llvm::formatv(
          "'{0}' op of @{1} reads {2} as a permutation, which the program "
          "computes: nm-run runs permutations that are constants, come from "
          "nm_sparse.pack, or are arguments with the same last dimension",
          op->getName(), entry.getSymName(), toString(op.getPerm().getType())));
    found.insert(argument.getArgNumber());
  }
  return found;
}
