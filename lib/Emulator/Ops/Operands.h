//===- Operands.h - find an operation's operands at run time ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_OPERANDS_H
#define NM_SPARSE_LIB_EMULATOR_OPS_OPERANDS_H

#include "Memory/Site.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include <optional>

namespace mlir::nm_sparse::emulator {

/// Where an operand of type T is among all operands of its operation.
template <typename T>
class OperandReader {
public:
  OperandReader(OpOperand &operand) : position(operand.getOperandNumber()) {}
  T operator()(Values operands) const {
    return *static_cast<const T *>(operands[position]);
  }

private:
  unsigned position;
};

/// The same for an operand that may be absent.
template <typename T>
class OptionalReader {
public:
  OptionalReader(const MutableOperandRange &range) {
    if (!range.empty())
      reader.emplace(range[0]);
  }
  explicit operator bool() const { return reader.has_value(); }
  std::optional<T> operator()(Values operands) const {
    return reader ? std::optional<T>((*reader)(operands)) : std::nullopt;
  }

private:
  std::optional<OperandReader<T>> reader;
};

/// Reads if the predicate of an operation, if it has one, lets it run.
class PredicateReader {
public:
  PredicateReader(const MutableOperandRange &range) : reader(range) {}
  bool operator()(Values operands) const {
    return reader(operands).value_or(1) & 1;
  }

private:
  OptionalReader<uint8_t> reader;
};

/// Several operands of type T.
template <typename T>
class VariadicReader {
public:
  VariadicReader(const MutableOperandRange &range)
      : first(range.empty() ? 0 : range[0].getOperandNumber()),
        count(range.size()) {}
  unsigned size() const { return count; }
  SmallVector<T, 5> operator()(Values operands) const {
    SmallVector<T, 5> values;
    for (unsigned i = 0; i < count; ++i)
      values.push_back(*static_cast<const T *>(operands[first + i]));
    return values;
  }

private:
  unsigned first, count;
};

/// The address space that an operand of pointer type says.
inline AddressSpace getAddressSpace(Value pointer) {
  return static_cast<AddressSpace>(
      cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace());
}

template <typename T>
void setResult(Values results, T value) {
  *static_cast<T *>(results[0]) = value;
}

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_OPERANDS_H
