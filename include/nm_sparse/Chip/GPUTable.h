//===- GPUTable.h - the tables of GPUs --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_CHIP_GPUTABLE_H
#define NM_SPARSE_CHIP_GPUTABLE_H

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Support/NamedField.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/JSON.h"

namespace mlir::nm_sparse {

/// The file share/nm_sparse/gpus/GPU.json, as it was when this library was
/// built. docs/GPUs.md says what is in one.
const llvm::json::Object &getGPUTable(llvm::StringRef gpu);

/// The members of `object` that `fields` names, which it must have. `where`
/// says in an error what the object is of.
template <typename T, size_t N>
T readNumbers(const llvm::json::Object &object,
              const NamedField<T> (&fields)[N], const llvm::Twine &where) {
  T result = {};
  for (const NamedField<T> &field : fields) {
    auto number = object.getNumber(field.name);
    if (!number)
      llvm::report_fatal_error(where + " has no number '" + field.name + "'");
    result.*field.field = *number;
  }
  return result;
}

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_CHIP_GPUTABLE_H
