//===- TunedProblem.cpp - what a measured time depends on -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/MatmulProblem.h"
#include "nm_sparse/Chip/Chip.h"
#include "nm_sparse/Tuning/TuningDatabase.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::nm_sparse;

template <typename T>
static std::string print(const T &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

static std::string getLayout(bool isFeatureMajor) {
  return isFeatureMajor ? "feature-major" : "token-major";
}

TunedProblem TunedProblem::get(MatmulOp op, int64_t tokens, const Chip &chip) {
  MatmulProblem problem = MatmulProblem::get(op, tokens);
  TunedProblem result;
  result.gpu = chip.gpu.str();
  result.encoding = print(op.getEncoding());
  Attribute storage = op.getStorageAttr();
  result.storage = storage ? print(storage) : "canonical";
  result.type = problem.format->name.str();
  result.x = getLayout(problem.xFeatureMajor);
  result.y = getLayout(problem.yFeatureMajor);
  if (problem.patches) {
    // The batch is in the tokens.
    SmallVector<int64_t> shape(problem.image.getShape());
    shape[problem.patches.getImageDim('b')] = ShapedType::kDynamic;
    result.patches =
        print(problem.patches) + " of " + print(problem.image.clone(shape));
  }
  result.writtenBytes = problem.epilogue.writtenBytes;
  result.readBytes = problem.epilogue.readBytes;
  result.batch = problem.batch;
  result.inputs = problem.getDenseRows();
  result.outputs = problem.outputs;
  result.tokens = problem.tokens;
  return result;
}

std::string TunedProblem::getLayer() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const std::string *part :
       {&gpu, &encoding, &storage, &type, &x, &y, &patches})
    os << *part << '\n';
  for (int64_t number : {writtenBytes, readBytes, batch, inputs, outputs})
    os << number << '\n';
  return text;
}
