//===- CheckpointInput.cpp - weights in place of a program ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckpointInput.h"
#include "Table.h"

#include "nm_sparse/Support/QuoteName.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {
/// A weight that is asked for, and whether by its own name.
struct Choice {
  const CheckpointWeight *weight;
  bool isNamed;
};
} // namespace

/// The weights that `options.weights` ask for, in the order of the checkpoint.
static llvm::Expected<std::vector<Choice>>
choose(const Checkpoint &checkpoint, const CompileOptions &options) {
  std::vector<Choice> choices;
  for (const CheckpointWeight &weight : checkpoint.getWeights())
    choices.push_back({&weight, false});
  if (options.weights.empty())
    return choices;
  std::vector<bool> isMeant(choices.size());
  for (StringRef text : options.weights) {
    auto pattern = llvm::GlobPattern::create(text);
    bool isFound = false;
    for (auto [i, choice] : llvm::enumerate(choices)) {
      bool isNamed = choice.weight->name == text;
      if (!isNamed && !(pattern && pattern->match(choice.weight->name)))
        continue;
      isFound = isMeant[i] = true;
      choice.isNamed |= isNamed;
    }
    if (!pattern)
      llvm::consumeError(pattern.takeError());
    if (!isFound)
      return llvm::createStringError(llvm::formatv(
          "{0} has no weight {1}; --list prints those that it has",
          checkpoint.getPath(), quoteName(text)));
  }
  std::vector<Choice> meant;
  for (auto [choice, is] : llvm::zip_equal(choices, isMeant))
    if (is)
      meant.push_back(choice);
  return meant;
}

static llvm::Expected<TwoFourPattern> check(const Checkpoint &checkpoint,
                                            const CheckpointWeight &weight) {
  auto data = checkpoint.read(weight);
  if (!data)
    return data.takeError();
  return checkTwoFour(data->bytes, weight.outputs, weight.inputs, *weight.type);
}

/// Describes the violations of 2:4.
static std::string describeViolations(const CheckpointWeight &weight,
                                      const TwoFourPattern &pattern) {
  return llvm::formatv(
      "{0} is not 2:4: {1} of {2} windows have more than 2 nonzero elements; "
      "the first is window {3} of output {4}",
      quoteName(weight.name), pattern.violations, pattern.windows,
      pattern.firstWindow, pattern.firstOutput);
}

static void warn(const CompileOptions &options, const llvm::Twine &text) {
  *options.host.err << "nm-compile: warning: " << text << "\n";
}

llvm::Expected<CheckpointInput>
CheckpointInput::open(const CompileOptions &options) {
  auto checkpoint = Checkpoint::open(options.checkpoint);
  if (!checkpoint)
    return checkpoint.takeError();
  for (StringRef path : checkpoint->getPaths())
    if (llvm::Error error = checkInput(options, path))
      return error;
  CheckpointInput input(std::move(*checkpoint));
  auto choices = choose(input.checkpoint, options);
  if (!choices)
    return choices.takeError();
  std::vector<const CheckpointWeight *> taken;
  for (auto [weight, isNamed] : *choices) {
    auto pattern = check(input.checkpoint, *weight);
    if (!pattern)
      return pattern.takeError();
    if (!pattern->isTwoFour()) {
      std::string text = describeViolations(*weight, *pattern);
      if (isNamed)
        return llvm::createStringError(options.checkpoint + ": weight " + text +
                                       "; prune the weight");
      if (pattern->isNearlyTwoFour())
        warn(options, "left out: " + text);
      continue;
    }
    if (!weight->scale.empty())
      warn(options, quoteName(weight->name) + " has the scale " +
                        quoteName(weight->scale) +
                        ", which the function does not apply");
    taken.push_back(weight);
  }
  if (taken.empty())
    return llvm::createStringError(llvm::formatv(
        "{0}: none of {1} weights is 2:4 along its inputs{2}; --list says more",
        options.checkpoint, choices->size(),
        input.checkpoint.getSparsity().empty()
            ? ""
            : (" (config.json says " + input.checkpoint.getSparsity() + ")")
                  .str()));
  input.layers = nameLayers(taken);
  return input;
}

llvm::Expected<OutputFile> CheckpointInput::pack(StringRef path) const {
  return OutputFile::createPlain(path, [&](llvm::raw_fd_ostream &stream) {
    return writePackedWeights(checkpoint, layers, stream);
  });
}

llvm::Error nm_sparse::printWeights(const CompileOptions &options,
                                    llvm::raw_ostream &os) {
  auto checkpoint = Checkpoint::open(options.checkpoint);
  if (!checkpoint)
    return checkpoint.takeError();
  auto choices = choose(*checkpoint, options);
  if (!choices)
    return choices.takeError();
  std::vector<TableRow> rows = {
      {"weight", "outputs x inputs", "type", "stored", "pattern"}};
  int64_t count = 0;
  for (const Choice &choice : *choices) {
    const CheckpointWeight &weight = *choice.weight;
    auto pattern = check(*checkpoint, weight);
    if (!pattern)
      return pattern.takeError();
    count += pattern->isTwoFour();
    rows.push_back(
        {StringRef(quoteName(weight.name)).drop_front().drop_back().str(),
         llvm::formatv("{0} x {1}", weight.outputs, weight.inputs),
         weight.type->element.str(),
         weight.isCompressed() ? "sparse-24-bitmask" : "dense",
         pattern->describe() + (weight.scale.empty()
                                    ? ""
                                    : "; scale " + quoteName(weight.scale))});
  }
  printTable(os, rows);
  os << count << " of " << choices->size() << " weights are 2:4";
  if (!checkpoint->getSparsity().empty())
    os << "; config.json says " << checkpoint->getSparsity();
  os << "\n";
  return llvm::Error::success();
}
