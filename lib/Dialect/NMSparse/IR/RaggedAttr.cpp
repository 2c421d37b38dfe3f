//===- RaggedAttr.cpp - free weights stored panel by panel ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RaggedFields.h"

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// More rows fill panels up with more zeros than a K step ever has rows.
static constexpr int64_t kMostRows = 256;

ParseResult nm_sparse::parseRaggedFields(AsmParser &parser, int64_t &rows,
                                         int64_t &density) {
  rows = RaggedAttr::kDefaultRows;
  density = RaggedAttr::kDefaultDensity;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    SMLoc loc = parser.getCurrentLocation();
    int64_t value;
    if (parser.parseKeyword(&key))
      return failure();
    if (key != "rows" && key != "density")
      return parser.emitError(loc)
             << "unknown key '" << key << "', expected 'rows' or 'density'";
    if (parser.parseEqual() || parser.parseInteger(value))
      return failure();
    (key == "rows" ? rows : density) = value;
  }
  return success();
}

void nm_sparse::printRaggedFields(AsmPrinter &printer, int64_t rows,
                                  int64_t density) {
  if (rows != RaggedAttr::kDefaultRows)
    printer << ", rows = " << rows;
  if (density != RaggedAttr::kDefaultDensity)
    printer << ", density = " << density;
}

/// Rows of a part of a block at most: the shortest K steps that kernels have.
static constexpr int64_t kMostPartRows = 16;

int64_t RaggedAttr::getBlockRows() const {
  return std::gcd(getEncoding().getBlockK(),
                  std::gcd(getRows(), kMostPartRows));
}

LogicalResult RaggedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 EncodingAttr encoding, int64_t rows,
                                 int64_t density) {
  if (!encoding.isFree())
    return emitError() << "ragged panels are those of a free weight, got "
                       << encoding;
  if (rows < 1 || rows > kMostRows)
    return emitError() << "ragged panels have rows = " << rows
                       << ", legal are 1 to " << kMostRows;
  if (density < 0 || density > 100)
    return emitError() << "ragged panels have density = " << density
                       << ", which is a percentage, 0 to 100";
  return success();
}

/// The verifier refuses all others.
LogicalResult
RaggedAttr::verifyPackable(function_ref<InFlightDiagnostic()>) const {
  return success();
}

Attribute RaggedAttr::getPattern() const { return getEncoding(); }

StringRef RaggedAttr::getFormName() const { return getMnemonic(); }

std::optional<ListedPanels> RaggedAttr::getListedPanels() const {
  return ListedPanels{getRows(), getBlockRows(), double(getDensity()) / 100};
}

Attribute RaggedAttr::withDensity(int64_t percent) const {
  if (getDensity() != kDefaultDensity)
    return *this;
  return get(getContext(), getEncoding(), getRows(), percent);
}

Attribute RaggedAttr::withPattern(Attribute pattern) const {
  return get(getContext(), cast<EncodingAttr>(pattern), getRows(),
             getDensity());
}

int64_t RaggedAttr::getLayoutVersion() const {
  return getEncoding().getOrder() == OutputOrder::Shuffled ? 11 : 10;
}

SmallVector<WeightComponent>
RaggedAttr::getComponents(RankedTensorType weight) const {
  EncodingAttr encoding = getEncoding();
  PackedShape shape = getPackedShape(weight, encoding);
  Type word = IntegerType::get(getContext(), 32);
  SmallVector<int64_t> panels = {shape.panels, kPanelWords};
  if (weight.getRank() == 3)
    panels.insert(panels.begin(), shape.batch);
  // How many rows there are, only the data says.
  SmallVector<WeightComponent> components = {
      {kValuesComponent, ComponentRole::Values,
       RankedTensorType::get({ShapedType::kDynamic, encoding.getBlockN()},
                             weight.getElementType())},
      {kIndexComponent, ComponentRole::Positions,
       RankedTensorType::get({ShapedType::kDynamic, 1}, word)},
      {kPanelsComponent, ComponentRole::Panels,
       RankedTensorType::get(panels, word)}};
  if (encoding.getOrder() == OutputOrder::Shuffled)
    components.push_back(getPermComponent(weight, encoding));
  return components;
}

/// A window of all rows, of which the share `density` is kept.
Attribute RaggedAttr::getTilePattern(int64_t k) const {
  EncodingAttr encoding = getEncoding();
  int64_t bk = getBlockRows();
  int64_t m = std::min<int64_t>(llvm::divideCeil(k, bk),
                                EncodingAttr::kMaxWindowRows / bk);
  int64_t n = std::clamp<int64_t>(
      std::llround(double(m) * double(getDensity()) / 100), 1, m);
  return EncodingAttr::get(getContext(), n, m, bk, encoding.getBlockN(),
                           /*dim=*/0, OutputOrder::Identity);
}
