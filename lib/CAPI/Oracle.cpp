//===- Oracle.cpp - programs on the CPU behind a C interface --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Execution/Oracle.h"

#include "nm_sparse-c/Compiler.h"
#include "nm_sparse/Execution/Host/UseEmulator.h"
#include "nm_sparse/Runtime/Error.h"
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;

struct NmSparseOracle {
  std::unique_ptr<Oracle> oracle;
  std::vector<HostArray> results;
};

/// Records `error` as the runtime's last one.
static int record(llvm::Error error) {
  nmsSetLastError(llvm::toString(std::move(error)).c_str());
  return 1;
}

NmSparseOracle *nmSparseOracleCreate(const char *program, size_t bytes,
                                     const char *entry) {
  auto oracle =
      Oracle::create(StringRef(program, bytes), StringRef(entry ? entry : ""));
  if (!oracle) {
    record(oracle.takeError());
    return nullptr;
  }
  return new NmSparseOracle{std::move(*oracle), {}};
}

int32_t nmSparseOracleArguments(const NmSparseOracle *oracle) {
  return static_cast<int32_t>(oracle->oracle->getNumArguments());
}

/// A copy of what the caller passed: compiled code may write to its arguments.
static Argument copy(const NmSparseHostArray &given) {
  Argument argument;
  argument.isScalar = given.rank < 0;
  argument.array.elementBytes = given.elementBytes;
  int64_t elements = 1;
  for (int32_t i = 0; i < given.rank; ++i) {
    argument.array.shape.push_back(given.sizes[i]);
    elements *= given.sizes[i];
  }
  const char *data = static_cast<const char *>(given.data);
  if (elements > 0)
    argument.array.data.assign(data, data + elements * given.elementBytes);
  return argument;
}

int nmSparseOracleCall(NmSparseOracle *oracle,
                       const NmSparseHostArray *arguments, int32_t count) {
  std::vector<Argument> copies;
  copies.reserve(count);
  for (int32_t i = 0; i < count; ++i)
    copies.push_back(copy(arguments[i]));
  auto results = oracle->oracle->call(copies);
  if (!results)
    return record(results.takeError());
  oracle->results = std::move(*results);
  return 0;
}

int32_t nmSparseOracleResults(const NmSparseOracle *oracle) {
  return static_cast<int32_t>(oracle->results.size());
}

NmSparseHostArray nmSparseOracleResult(const NmSparseOracle *oracle,
                                       int32_t number) {
  const HostArray &result = oracle->results[number];
  return {const_cast<char *>(result.data.data()), result.kind,
          static_cast<int32_t>(result.elementBytes),
          static_cast<int32_t>(result.shape.size()), result.shape.data()};
}

void nmSparseOracleDestroy(NmSparseOracle *oracle) { delete oracle; }

int nmSparseUseEmulator(const char *chip) {
  EmulatorOptions options;
  if (chip && *chip)
    options.chip = chip;
  if (llvm::Error error = useEmulator(options))
    return record(std::move(error));
  return 0;
}
