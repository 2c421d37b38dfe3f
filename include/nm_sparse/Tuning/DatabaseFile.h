//===- DatabaseFile.h - files that several searches write to ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_TUNING_DATABASEFILE_H
#define NM_SPARSE_TUNING_DATABASEFILE_H

#include "nm_sparse/Tuning/TuningDatabase.h"
#include <utility>

namespace mlir::nm_sparse {

/// The file of a database, held alone as long as the object lives: other
/// processes that write to it wait. Errors name the file.
class DatabaseFile {
public:
  /// Makes the file if there is none.
  static llvm::Expected<DatabaseFile> open(StringRef path);
  ~DatabaseFile();
  DatabaseFile(DatabaseFile &&other) noexcept
      : path(std::move(other.path)),
        descriptor(std::exchange(other.descriptor, -1)) {}
  DatabaseFile &operator=(DatabaseFile &&) = delete;

  /// Adds a line.
  llvm::Error append(const TunedEntry &entry);
  /// Puts these entries in the place of all lines.
  llvm::Error replace(const TuningDatabase &database);

private:
  DatabaseFile() = default;

  std::string path;
  int descriptor = -1;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_TUNING_DATABASEFILE_H
