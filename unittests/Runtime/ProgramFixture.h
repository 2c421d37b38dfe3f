//===- ProgramFixture.h - Programs on a fake driver -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_UNITTESTS_RUNTIME_PROGRAMFIXTURE_H
#define NM_SPARSE_UNITTESTS_RUNTIME_PROGRAMFIXTURE_H

#include "DriverTest.h"

#include "nm_sparse/Runtime/Program.h"

#include <memory>
#include <string>
#include <vector>

namespace nms::test {

/// An argument of f16 of any number of rows, and one buffer of `sizes`.
inline std::string makeManifest(const std::string &sizes,
                                const std::string &launches = "",
                                const std::string &more = "") {
  return R"({"manifest_version": 2, "functions": [{"name": "f", "arguments": [
      {"name": "arg0", "role": "data", "type": "memref<?x64xf16>"},
      {"name": "arg1", "role": "data",
       "type": "memref<?x64xf16, strided<[?, 1], offset: ?>>"}],
      "weights": [], "buffers": [{"name": "buffer0", "type": "memref<?xf32>",
      "sizes": [")" +
         sizes + R"("])" + more + R"(}], "launches": [)" + launches +
         R"(], "results": [{"buffer": "arg1", "type": "memref<?x64xf16>"},
      {"buffer": "buffer0", "type": "memref<?xf32>", "offset": "8",
       "sizes": ["2", "arg0.size[0]"], "strides": ["buffer0.stride[0]", "1"]}
      ]}]})";
}

const char *const kLaunch =
    R"({"kernel": "k", "grid": ["arg0.size[0]", "2", "1"],
    "block": ["128", "1", "1"], "dynamic_shared_memory": "1024", "parameters": [
    {"type": "ptr", "source": "arg1", "field": "aligned"},
    {"type": "i64", "source": "arg0", "field": "stride[0]"},
    {"type": "i64", "source": "arg1", "field": "stride[0]"}]})";

class ProgramTest : public DriverTest {
protected:
  void load(const std::string &manifest, const std::string &image = "// ptx") {
    program.reset(nmsProgramCreate(manifest.data(), manifest.size(),
                                   image.data(), image.size()));
  }

  /// Two arrays of `rows` x 64, the second one with rows of `stride` elements.
  std::vector<NmsArray> makeArrays(int64_t rows, int64_t stride = 64) {
    sizes[0] = rows;
    sizes[1] = 64;
    strides[0] = stride;
    strides[1] = 1;
    return {{memory, 2, sizes, nullptr}, {memory + 256, 2, sizes, strides}};
  }

  int64_t countBytes(const std::string &expression, int64_t rows = 5) {
    load(makeManifest(expression));
    if (!program)
      return -2;
    auto arrays = makeArrays(rows);
    return nmsProgramWorkspace(program.get(), 0, arrays.data(), 2);
  }

  void TearDown() override {
    program.reset();
    DriverTest::TearDown();
  }

  struct Destroy {
    void operator()(NmsProgram *p) const { nmsProgramDestroy(p); }
  };
  std::unique_ptr<NmsProgram, Destroy> program;
  alignas(256) char memory[4096];
  int64_t sizes[2], strides[2];
};

} // namespace nms::test

#endif // NM_SPARSE_UNITTESTS_RUNTIME_PROGRAMFIXTURE_H
