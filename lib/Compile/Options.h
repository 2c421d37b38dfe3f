//===- Options.h - command line of nm-compile -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_COMPILE_OPTIONS_H
#define NM_SPARSE_LIB_COMPILE_OPTIONS_H

#include "nm_sparse/Analysis/CostModel.h"
#include "nm_sparse/Checkpoint/BindWeights.h"
#include "nm_sparse/Checkpoint/TensorFile.h"
#include "nm_sparse/Compile/Host.h"
#include "nm_sparse/Hosts/IREE/IREEModule.h"
#include "nm_sparse/Pipelines/Pipelines.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::nm_sparse {

class CommandLine;

/// The options of --advise.
struct AdviceOptions {
  bool isAsked = false;
  int64_t outputs = 0, inputs = 0;   ///< From --shape; 0: from a weight.
  const StoredType *type = nullptr;  ///< Null: that of the weight, or f16.
  std::vector<std::string> patterns; ///< None: the usual ones.
  std::string gram;                  ///< A file, or FILE:NAME.
  int64_t fitRows = 0;               ///< 0: as many as usual.
  std::string json;                  ///< A file; - is standard output.
};

/// The options of --recommend; its JSON goes where that of --advise does.
struct RecommendOptions {
  bool isAsked = false;
  std::string clocks;   ///< A recorded sweep.
  int64_t maxLoss = -1; ///< Percent; less than 0: as much as usual.
};

struct CompileOptions {
  CompileHost host;
  std::string output, emit = "ptx", manifest, chip;
  std::string object = "ptx"; ///< The form of the kernels in a host's file.
  IREEOptions iree;
  GPUPipelineOptions pipeline;
  Objective objective = Objective::Time;
  int64_t candidates = 0;
  bool explain = false, printSupport = false, help = false;
  std::vector<WeightBinding> bindings; ///< Arguments that become constants.
  std::vector<std::string> tuned;      ///< Databases of measured schedules.
  bool version = false, saysDensity = false;
  std::string input; ///< A program, or the checkpoint.
  std::string checkpoint, packed;
  std::vector<std::string> weights; ///< Names or patterns; none: all.
  bool list = false;
  AdviceOptions advice;
  RecommendOptions recommend;
};

/// Usage errors are one sentence.
llvm::Error parseCompileOptions(ArrayRef<const char *> arguments,
                                CompileOptions &options);

/// The first flag of `given` that is there, or empty.
StringRef findGiven(ArrayRef<std::pair<StringRef, bool>> given);

/// The options of --advise, and what is wrong with them and others beside them.
void addAdviceOptions(CommandLine &line, AdviceOptions &options);
llvm::Error checkAdviceOptions(const CompileOptions &options,
                               ArrayRef<std::string> positional);

/// Options of kernels and of the files that hold them; empty if not given.
struct HostForm {
  std::string arguments, object, version, weights;
};

/// The options of --emit c and --emit iree: `form` is what is given, from which
/// `options` follow.
void addHostOptions(CommandLine &line, CompileOptions &options, HostForm &form);
llvm::Error chooseHostForm(const HostForm &form, CompileOptions &options);

/// The same of --recommend.
void addRecommendOptions(CommandLine &line, RecommendOptions &options);
llvm::Error checkRecommendOptions(const CompileOptions &options);

/// Fails if an output of `options` would replace `input`, a file.
llvm::Error checkInput(const CompileOptions &options, StringRef input);

/// The text of --help.
std::string describeUsage();

/// The name, in --emit, of the program before all stages.
inline constexpr llvm::StringLiteral kInputStage = "linalg";

/// Returns true if --emit names the IR after a stage, or that of the program.
bool isStage(StringRef name);

/// The header beside `source`, whose name ends in .c.
std::string getHeaderPath(StringRef source);

/// Returns true if --emit names a host whose code holds the kernels.
bool isHost(StringRef name);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_COMPILE_OPTIONS_H
