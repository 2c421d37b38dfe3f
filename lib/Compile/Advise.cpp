//===- Advise.cpp - compare patterns for a layer --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advice.h"
#include "nm_sparse/Support/OutputFile.h"

#include "mlir/AsmParser/AsmParser.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"
#include "nm_sparse/Pipelines/Run.h"
#include "nm_sparse/Support/QuoteName.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// One of each kind that has users, by the share of zeros. Long vectors keep
/// hardly less than short ones, so there are few of these.
static constexpr const char *usualPatterns[] = {
    "12:16",
    "24:32, block = [1, 128]",
    "2:4",
    "8:16",
    "16:32",
    "16:32, block = [1, 8]",
    "16:32, block = [1, 32]",
    "16:32, block = [1, 64]",
    "16:32, block = [1, 128]",
    "16:32, block = [1, 256]",
    "4:8, block = [16, 1]",
    "4:8, block = [16, 128]",
    "[4:5, block = [1, 64]], [2:4]",
    "[4:8, block = [1, 64]], [2:4]",
    "4:16",
    "8:32, block = [1, 128]",
    "4:32, block = [1, 128]",
};

/// A batch of one, a few users, a short prompt and a long one.
static constexpr int64_t usualTokens[] = {1, 16, 256, 2048};

/// Outputs that are fitted: enough for two digits of the error, and few enough
/// for a solve each.
static constexpr int64_t kFitRows = 32;

/// The encoding of a weight that is outputs x inputs, of the text between the
/// brackets of one.
static llvm::Expected<EncodingAttr> parsePattern(MLIRContext &context,
                                                 StringRef text) {
  auto fail = [&](StringRef why) {
    return llvm::createStringError(llvm::formatv(
        "--pattern: '{0}' is not a pattern: {1}; legal are such as 2:4, or "
        "'8:32, block = [1, 64]'",
        text, why));
  };
  auto attribute =
      parseAttributeText(context, ("#nm_sparse.encoding<" + text + ">").str());
  if (!attribute)
    return fail(llvm::toString(attribute.takeError()));
  auto encoding = dyn_cast<EncodingAttr>(*attribute);
  if (!encoding)
    return fail("it is another attribute");
  if (encoding.isFree())
    return fail("what free elements keep is not a pattern's but a weight's");
  if (encoding.getOrder() != OutputOrder::Identity)
    return fail("no order of outputs is searched for");
  return EncodingAttr::get(&context, encoding.getLevels(), /*dim=*/1,
                           encoding.getOrder());
}

static llvm::Expected<std::vector<std::pair<std::string, EncodingAttr>>>
findPatterns(MLIRContext &context, ArrayRef<std::string> given) {
  std::vector<std::string> texts(given.begin(), given.end());
  if (texts.empty())
    texts.assign(std::begin(usualPatterns), std::end(usualPatterns));
  std::vector<std::pair<std::string, EncodingAttr>> patterns;
  for (const std::string &text : texts) {
    auto encoding = parsePattern(context, text);
    if (!encoding)
      return encoding.takeError();
    patterns.emplace_back(text, *encoding);
  }
  return patterns;
}

/// Returns true if `a` is at least as good as `b` for number `i` of the tokens
/// in time and in what it keeps, and better in one of them.
static bool beats(const PatternAdvice &a, const PatternAdvice &b, size_t i) {
  if (!a.times[i].isCompiled())
    return false;
  auto times = std::pair(a.times[i].getSeconds(), b.times[i].getSeconds());
  auto errors = std::pair(a.kept->outputError, b.kept->outputError);
  return times.first <= times.second && errors.first <= errors.second &&
         (times.first < times.second || errors.first < errors.second);
}

/// Marks the fastest of each number of tokens, and the best of a weight.
static void compare(Advice &advice) {
  for (size_t i = 0; i < advice.tokens.size(); ++i) {
    // Dense products are always compiled.
    PatternTime *fastest = &advice.patterns.front().times[i];
    // They were measured beside each of the others.
    for (const PatternAdvice &row : advice.patterns)
      if (const auto &measured = row.times[i].measured;
          measured && measured->dense > 0)
        fastest->measured = MeasuredTime{measured->dense, measured->dense};
    for (PatternAdvice &row : advice.patterns) {
      PatternTime &time = row.times[i];
      if (!time.isCompiled())
        continue;
      if (time.getSeconds() < fastest->getSeconds())
        fastest = &time;
      time.isBest =
          row.kept && llvm::none_of(advice.patterns, [&](const auto &other) {
            return beats(other, row, i);
          });
    }
    fastest->isFastest = true;
  }
}

namespace {
/// The weight that --weight names, and its elements.
struct NamedWeight {
  Checkpoint checkpoint;
  const CheckpointWeight *weight;
  WeightData data;
};
} // namespace

static llvm::Expected<NamedWeight> readWeight(const CompileOptions &options) {
  auto checkpoint = Checkpoint::open(options.checkpoint);
  if (!checkpoint)
    return checkpoint.takeError();
  StringRef name = options.weights.front();
  const auto *weight = llvm::find_if(
      checkpoint->getWeights(),
      [&](const CheckpointWeight &weight) { return weight.name == name; });
  if (weight == checkpoint->getWeights().end())
    return llvm::createStringError(
        llvm::formatv("{0} has no weight {1}; --list prints those that it has",
                      options.checkpoint, quoteName(name)));
  if (!weight->scale.empty())
    *options.host.err << "nm-compile: warning: " << quoteName(name)
                      << " has the scale " << quoteName(weight->scale)
                      << ", which is not applied to what patterns keep\n";
  auto data = checkpoint->read(*weight);
  if (!data)
    return data.takeError();
  return NamedWeight{std::move(*checkpoint), weight, std::move(*data)};
}

/// FILE or FILE:NAME, where a file called all of it comes first.
static llvm::Expected<GramMatrix> readGram(StringRef text, int64_t inputs) {
  if (llvm::sys::fs::exists(text) || !text.contains(':'))
    return GramMatrix::read(text, "", inputs);
  auto [path, name] = text.rsplit(':');
  return GramMatrix::read(path, name, inputs);
}

/// Measures what each pattern of `advice` keeps.
static llvm::Error measure(Advice &advice, const NamedWeight &named,
                           const AdviceOptions &options, MLIRContext &context) {
  const CheckpointWeight &weight = *named.weight;
  DenseWeight dense = {
      named.data.bytes, weight.outputs, weight.inputs,
      *getRuntimeKind(parseType(weight.type->element, &context))};
  std::optional<GramMatrix> gram;
  if (!options.gram.empty()) {
    auto read = readGram(options.gram, weight.inputs);
    if (!read)
      return read.takeError();
    gram = std::move(*read);
    advice.hasGram = true;
    advice.fitted = drawOutputs(
        weight.outputs, options.fitRows > 0 ? options.fitRows : kFitRows);
  }
  llvm::DenseMap<EncodingAttr, KeptQuality> measured;
  for (PatternAdvice &row : advice.patterns) {
    if (row.isDense()) {
      row.kept = KeptQuality();
      continue;
    }
    // Rows that differ in their storage keep the same.
    if (!measured.contains(row.encoding)) {
      auto kept = measureKept(dense, row.encoding, gram ? &*gram : nullptr,
                              advice.fitted);
      if (!kept)
        return llvm::createStringError(named.checkpoint.getPath() + ": " +
                                       quoteName(weight.name) + ": " +
                                       llvm::toString(kept.takeError()));
      measured[row.encoding] = *kept;
    }
    row.kept = measured[row.encoding];
  }
  return llvm::Error::success();
}

static llvm::Error report(const Advice &advice, const CompileOptions &options) {
  const std::string &json = options.advice.json;
  if (json != "-")
    printAdvice(advice, *options.host.out);
  if (json.empty())
    return llvm::Error::success();
  auto file = options.host.createFile(
      json, llvm::formatv("{0:2}\n", toJSON(advice)).str());
  return file ? file->keep() : file.takeError();
}

llvm::Error nm_sparse::advise(MLIRContext &context,
                              const CompileOptions &options) {
  Advice advice;
  advice.chip = findChip(options.pipeline.chip, options.pipeline.gpu);
  advice.shape = {options.advice.outputs, options.advice.inputs,
                  findElementType("f16")};
  std::optional<NamedWeight> named;
  if (!options.checkpoint.empty()) {
    auto read = readWeight(options);
    if (!read)
      return read.takeError();
    named.emplace(std::move(*read));
    advice.weight = named->weight->name;
    advice.shape = {named->weight->outputs, named->weight->inputs,
                    named->weight->type};
  }
  if (options.advice.type)
    advice.shape.type = options.advice.type;
  auto patterns = findPatterns(context, options.advice.patterns);
  if (!patterns)
    return patterns.takeError();
  advice.tokens.assign(options.pipeline.tokens.begin(),
                       options.pipeline.tokens.end());
  if (advice.tokens.empty())
    advice.tokens.assign(std::begin(usualTokens), std::end(usualTokens));
  llvm::sort(advice.tokens);
  advice.tokens.erase(llvm::unique(advice.tokens), advice.tokens.end());
  GPUPipelineOptions pipeline;
  pipeline.copyOptionValuesFrom(options.pipeline);
  pipeline.tokens = advice.tokens;

  advice.patterns.push_back(
      predictDense(context, advice.shape, advice.tokens, *advice.chip));
  for (const auto &[text, encoding] : *patterns)
    for (PatternAdvice &row :
         predictPattern(advice.shape, encoding, pipeline)) {
      row.pattern = text;
      advice.patterns.push_back(std::move(row));
    }
  if (named)
    if (llvm::Error error = measure(advice, *named, options.advice, context))
      return error;
  compare(advice);
  return report(advice, options);
}
