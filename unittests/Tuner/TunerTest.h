//===- TunerTest.h - problems and databases of tests ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_UNITTESTS_TUNER_TUNERTEST_H
#define NM_SPARSE_UNITTESTS_TUNER_TUNERTEST_H

#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Tuner/Tune.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

namespace mlir::nm_sparse {

/// Panels of 64 outputs that keep 8 of 32 rows, token-major.
inline TunedProblem makeProblem(int64_t tokens) {
  TunedProblem problem;
  problem.gpu = "h200";
  problem.encoding = "#nm_sparse.encoding<8:32, block = [1, 64], dim = 1>";
  problem.storage = "canonical";
  problem.type = "f16";
  problem.x = problem.y = "token-major";
  problem.writtenBytes = 2;
  problem.inputs = 256;
  problem.outputs = 128;
  problem.tokens = tokens;
  return problem;
}

inline TuneTarget getH200(Objective objective = Objective::Time) {
  return {findGPU("h200"), objective};
}

/// A file that is removed with its scope.
struct TemporaryFile {
  TemporaryFile() {
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("tuned", "jsonl", path));
  }
  ~TemporaryFile() { llvm::sys::fs::remove(path); }

  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
  void write(StringRef text) const {
    std::error_code code;
    llvm::raw_fd_ostream(path, code) << text;
  }

  SmallString<64> path;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_UNITTESTS_TUNER_TUNERTEST_H
