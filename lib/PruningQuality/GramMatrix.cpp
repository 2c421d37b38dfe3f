//===- GramMatrix.cpp - which inputs of a layer go together ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/PruningQuality/GramMatrix.h"

#include "nm_sparse/Base/Convert.h"
#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Base/Random.h"
#include "nm_sparse/Checkpoint/TensorFile.h"
#include "nm_sparse/Support/QuoteName.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace mlir::nm_sparse;

/// The allowed difference of the two products of two inputs, relative to their
/// norms: sums in f16 and tf32 are computed in different orders.
static constexpr double kAsymmetry = 1e-2;

double nm_sparse::dot(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  // Four sums, which do not wait for each other.
  double sums[4] = {};
  size_t whole = a.size() / 4 * 4;
  for (size_t i = 0; i < whole; i += 4)
    for (size_t j = 0; j < 4; ++j)
      sums[j] += a[i + j] * b[i + j];
  for (size_t i = whole; i < a.size(); ++i)
    sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double GramMatrix::getMeanDiagonal() const {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i)
    sum += getRow(i)[i];
  return sum / double(size);
}

double GramMatrix::getSquare(llvm::ArrayRef<double> v) const {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i)
    if (v[i] != 0)
      sum += v[i] * dot(getRow(i), v);
  return std::max(sum, 0.0);
}

/// The tensor called `name`, or the only one.
static llvm::Expected<const TensorInfo *> findTensor(const TensorFile &file,
                                                     llvm::StringRef name) {
  llvm::ArrayRef<TensorInfo> tensors = file.getTensors();
  if (name.empty() && tensors.size() == 1)
    return &tensors.front();
  const auto *found = llvm::find_if(
      tensors, [&](const TensorInfo &tensor) { return tensor.name == name; });
  if (!name.empty() && found != tensors.end())
    return found;
  std::string text = name.empty() ? std::to_string(tensors.size()) +
                                        " tensors: say which one, as FILE:NAME"
                                  : "no tensor " + quoteName(name);
  return llvm::createStringError(file.getPath() + " has " + text);
}

/// Makes `elements`, size x size, symmetric; or says what they cannot be.
static std::string symmetrize(std::vector<double> &elements, int64_t size) {
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j)
      if (double value = elements[i * size + j];
          !std::isfinite(value) || (i == j && value < 0))
        return llvm::formatv("has {0} at [{1}, {2}]: legal are finite numbers, "
                             "on the diagonal sums of squares",
                             value, i, j);
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    sum += elements[i * size + i];
    for (int64_t j = i + 1; j < size; ++j) {
      double &a = elements[i * size + j], &b = elements[j * size + i];
      double norms =
          std::sqrt(elements[i * size + i]) * std::sqrt(elements[j * size + j]);
      if (std::fabs(a - b) > kAsymmetry * norms)
        return llvm::formatv("has {0} at [{1}, {2}] and {3} at [{2}, {1}]: "
                             "legal is a symmetric matrix, X^T X",
                             a, i, j, b);
      a = b = 0.5 * a + 0.5 * b;
    }
  }
  if (sum == 0)
    return "has a diagonal of zeros: legal are sums of squares of inputs";
  return "";
}

llvm::Expected<GramMatrix>
GramMatrix::read(llvm::StringRef path, llvm::StringRef name, int64_t inputs) {
  auto file = TensorFile::open(path);
  if (!file)
    return file.takeError();
  auto found = findTensor(*file, name);
  if (!found)
    return found.takeError();
  const TensorInfo &tensor = **found;
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError(file->getPath() + ": tensor " +
                                   quoteName(tensor.name) + " " + what);
  };
  int32_t kind = llvm::StringSwitch<int32_t>(tensor.type->name)
                     .Case("F64", NMS_F64)
                     .Case("F32", NMS_F32)
                     .Case("F16", NMS_F16)
                     .Case("BF16", NMS_BF16)
                     .Default(-1);
  if (kind < 0 ||
      llvm::ArrayRef<int64_t>(tensor.shape) != llvm::ArrayRef({inputs, inputs}))
    return fail(llvm::formatv(
        "is {0} of shape [{1:$[, ]}]: legal is F64, F32, F16 or BF16 of "
        "[{2}, {2}], as the weight has {2} inputs",
        tensor.type->name,
        llvm::make_range(tensor.shape.begin(), tensor.shape.end()), inputs));
  // A tensor may start anywhere in its file; the runtime reads whole elements.
  std::vector<double> aligned(llvm::divideCeil(tensor.data.size(), 8));
  std::memcpy(aligned.data(), tensor.data.data(), tensor.data.size());
  GramMatrix gram;
  gram.size = inputs;
  if (kind == NMS_F64) {
    gram.elements = std::move(aligned);
  } else {
    gram.elements.resize(inputs * inputs);
    if (nmsToDouble(kind, aligned.data(), gram.elements.data(),
                    inputs * inputs))
      return fail(nmsLastError());
  }
  std::string wrong = symmetrize(gram.elements, inputs);
  if (!wrong.empty())
    return fail(wrong);
  return gram;
}
