//===- BytecodeVersionTest.cpp - files of other versions ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file is written by a dialect of one version, and read by the same dialect
// of another one.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMSparse/IR/BytecodeVersion.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

/// The version of the dialect below that is loaded next, and what its reader
/// finds in a file.
uint64_t loadedVersion = 0;
std::optional<uint64_t> upgradedFrom;

struct Bytecode : public VersionedBytecodeInterface {
  explicit Bytecode(Dialect *dialect)
      : VersionedBytecodeInterface(dialect, loadedVersion) {}

  LogicalResult
  upgradeFromVersion(Operation *,
                     const DialectVersion &version) const override {
    upgradedFrom = static_cast<const BytecodeVersion &>(version).number;
    return success();
  }
};

struct VersionedDialect : public Dialect {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VersionedDialect)
  static StringRef getDialectNamespace() { return "versioned"; }

  explicit VersionedDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context,
                TypeID::get<VersionedDialect>()) {
    allowUnknownOperations();
    addInterfaces<Bytecode>();
  }
};

std::string write(uint64_t version) {
  loadedVersion = version;
  MLIRContext context;
  context.loadDialect<VersionedDialect>();
  auto module =
      parseSourceString<ModuleOp>("\"versioned.op\"() : () -> ()", &context);
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_TRUE(succeeded(writeBytecodeToFile(*module, os)));
  return text;
}

/// Reads the file as that version does; the first error, or an empty string.
std::string read(StringRef text, uint64_t version) {
  loadedVersion = version;
  upgradedFrom = std::nullopt;
  MLIRContext context;
  context.loadDialect<VersionedDialect>();
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (error.empty())
      error = diagnostic.str();
    return success();
  });
  bool isRead = bool(parseSourceString<ModuleOp>(text, &context));
  EXPECT_EQ(isRead, error.empty());
  return error;
}

TEST(BytecodeVersion, ReadsItsOwnAndEarlierVersions) {
  for (uint64_t version : {1, 2, 300}) {
    EXPECT_EQ(read(write(version), 300), "");
    EXPECT_EQ(upgradedFrom, version);
  }
}

TEST(BytecodeVersion, RefusesLaterVersions) {
  std::string error = read(write(2), 1);
  EXPECT_NE(error.find("version 2 of dialect 'versioned'"), std::string::npos)
      << error;
  EXPECT_NE(error.find("up to 1"), std::string::npos) << error;
}

} // namespace
