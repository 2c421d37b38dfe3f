//===- RaggedAttr.cpp - free weights stored panel by panel ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::nm_sparse;

/// More rows fill panels up with more zeros than a K step ever has rows.
static constexpr int64_t kMostRows = 256;

Attribute RaggedAttr::parse(AsmParser &parser, Type) {
  EncodingAttr encoding;
  int64_t rows = kDefaultRows, density = kDefaultDensity;
  SMLoc begin = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseAttribute(encoding))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    SMLoc loc = parser.getCurrentLocation();
    int64_t value;
    if (parser.parseKeyword(&key))
      return {};
    if (key != "rows" && key != "density") {
      parser.emitError(loc)
          << "unknown key '" << key << "', expected 'rows' or 'density'";
      return {};
    }
    if (parser.parseEqual() || parser.parseInteger(value))
      return {};
    (key == "rows" ? rows : density) = value;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<RaggedAttr>(begin, parser.getContext(), encoding,
                                       rows, density);
}

void RaggedAttr::print(AsmPrinter &printer) const {
  printer << '<' << getEncoding();
  if (getRows() != kDefaultRows)
    printer << ", rows = " << getRows();
  if (getDensity() != kDefaultDensity)
    printer << ", density = " << getDensity();
  printer << '>';
}

/// Rows of a part of a block at most: the shortest K steps that kernels have.
static constexpr int64_t kMostPartRows = 16;

/// Free elements one by one are bitmaps.
bool RaggedAttr::isDefaultFor(EncodingAttr encoding) {
  bool areElements = encoding.getBlockK() == 1 && encoding.getBlockN() == 1 &&
                     encoding.getOrder() == OutputOrder::Identity;
  return encoding.isFree() && !areElements;
}

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
