//===- ProgramPlan.cpp - a call of a program, by sizes --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramPlan.h"

#include "../Support/ErrorState.h"
#include "nm_sparse/Runtime/Error.h"

#include <algorithm>
#include <cstring>

using namespace nms;

namespace {

constexpr int64_t kWorkspaceAlignment = 256;

/// Sizes and strides of an array that a manifest names.
struct Extents {
  std::vector<int64_t> sizes, strides;

  int64_t countElements() const {
    int64_t count = 1;
    for (int64_t size : sizes)
      count *= size;
    return count;
  }
  void setContiguous() {
    strides.assign(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;)
      strides[i - 1] = strides[i] * sizes[i];
  }
};

class Planner {
public:
  Planner(const ManifestFunction &function, const KernelNumbers &kernels,
          const NmsArray *values, int count)
      : function(function), kernels(kernels), values(values), count(count),
        plan(std::make_unique<ProgramPlan>()),
        read([this](const Quantity &quantity, int64_t &value) {
          return readQuantity(quantity, value);
        }) {}

  bool checkArguments();
  bool evaluate(const Expression &expression, int64_t &value) {
    return expression.evaluate(read, value);
  }
  std::unique_ptr<ProgramPlan> run();

private:
  bool refuse(int argument, const std::string &what);
  bool checkArgument(int number);
  bool readQuantity(const Quantity &quantity, int64_t &value);
  const Extents *find(const std::string &name) const;
  bool evaluate(const std::vector<Expression> &expressions,
                std::vector<int64_t> &into);
  bool placeBuffers();
  bool planLaunch(const ManifestLaunch &launch);
  bool planParameter(const ManifestParameter &parameter,
                     PlannedParameter &planned);
  bool planMap(const ManifestParameter &parameter, PlannedParameter &planned);
  bool planResult(const ManifestResult &result);
  bool view(const ManifestSource &source,
            const std::optional<ManifestView> &part, Extents &extents,
            int64_t &offset);
  PlannedPointer point(const ManifestSource &source, int64_t offset) const {
    if (source.isBuffer)
      return {-1, bufferOffsets[source.number] + offset};
    return {source.number, offset};
  }
  const ManifestType &getType(const ManifestSource &source) const {
    return source.isBuffer ? function.buffers[source.number].type
                           : function.arguments[source.number].type;
  }
  const Extents &getExtents(const ManifestSource &source) const {
    return source.isBuffer ? buffers[source.number] : arguments[source.number];
  }

  const ManifestFunction &function;
  const KernelNumbers &kernels;
  const NmsArray *values;
  int count;
  std::vector<Extents> arguments, buffers;
  std::vector<int64_t> bufferOffsets;
  std::unique_ptr<ProgramPlan> plan;
  QuantityReader read;
};

std::string list(const std::vector<int64_t> &sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? ", " : "") +
            (sizes[i] == kDynamicSize ? "?" : std::to_string(sizes[i]));
  return text + "]";
}

/// True when each byte has an address, were empty dimensions of one element.
bool fitsInMemory(const std::vector<int64_t> &sizes, int64_t elementBytes) {
  constexpr int64_t most = int64_t(1) << 48;
  int64_t bytes = elementBytes;
  for (int64_t size : sizes)
    if (size < 0 || bytes > most ||
        __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      return false;
  return bytes <= most;
}

} // namespace

bool Planner::refuse(int argument, const std::string &what) {
  return !fail("argument %d of @%s, %s, %s", argument, function.name.c_str(),
               function.arguments[argument].type.text.c_str(), what.c_str());
}

bool Planner::checkArgument(int number) {
  const ManifestType &type = function.arguments[number].type;
  const NmsArray &value = values[number];
  Extents &extents = arguments[number];
  if (type.isNumber || value.rank < 0) {
    if (type.isNumber && value.rank < 0)
      return true;
    return refuse(number, type.isNumber
                              ? "is a number, and an array was given"
                              : "is an array, and a number was given");
  }
  extents.sizes.assign(value.sizes, value.sizes + value.rank);
  bool fits = extents.sizes.size() == type.shape.size() &&
              fitsInMemory(extents.sizes, type.elementBytes);
  for (size_t i = 0; fits && i < type.shape.size(); ++i)
    fits = extents.sizes[i] >= 0 &&
           (type.shape[i] == kDynamicSize || type.shape[i] == extents.sizes[i]);
  if (!fits)
    return refuse(number,
                  "was given an array of the shape " + list(extents.sizes));
  extents.setContiguous();
  if (!value.strides || extents.countElements() == 0)
    return true;
  std::vector<int64_t> given(value.strides, value.strides + value.rank);
  for (size_t i = 0; i < given.size(); ++i) {
    int64_t want = type.strides ? (*type.strides)[i] : extents.strides[i];
    bool isFree = extents.sizes[i] == 1 || want == kDynamicSize;
    if (given[i] < 0 || (!isFree && given[i] != want))
      return refuse(number, "was given an array with the strides " +
                                list(given) +
                                ": pass one whose rows follow "
                                "each other without gaps, such as a copy");
    // A dimension of one element has the stride that the type promises.
    if (want == kDynamicSize)
      extents.strides[i] = given[i];
    else
      extents.strides[i] = want;
  }
  return true;
}

bool Planner::checkArguments() {
  if (count != static_cast<int>(function.arguments.size()))
    return !fail("@%s takes %zu arguments, got %d", function.name.c_str(),
                 function.arguments.size(), count);
  arguments.resize(count);
  for (int i = 0; i < count; ++i)
    if (!checkArgument(i))
      return false;
  return true;
}

const Extents *Planner::find(const std::string &name) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (function.arguments[i].name == name)
      return &arguments[i];
  for (size_t i = 0; i < buffers.size(); ++i)
    if (function.buffers[i].name == name)
      return &buffers[i];
  return nullptr;
}

bool Planner::readQuantity(const Quantity &quantity, int64_t &value) {
  const Extents *extents = find(quantity.name);
  if (!extents)
    return !fail("'%s' is no argument or buffer of @%s", quantity.name.c_str(),
                 function.name.c_str());
  const char *what = "has no such dimension";
  switch (quantity.field) {
  case Quantity::Field::Offset:
    // Pointers are those of first elements.
    value = 0;
    return true;
  case Quantity::Field::Value: {
    size_t number = extents - arguments.data();
    what = "is no number";
    if (number >= arguments.size() || !function.arguments[number].type.isNumber)
      break;
    std::memcpy(&value, static_cast<const void *>(&values[number].data),
                sizeof(value));
    return true;
  }
  case Quantity::Field::Size:
  case Quantity::Field::Stride: {
    const std::vector<int64_t> &list = quantity.field == Quantity::Field::Size
                                           ? extents->sizes
                                           : extents->strides;
    if (quantity.dim < 0 || quantity.dim >= static_cast<int64_t>(list.size()))
      break;
    value = list[quantity.dim];
    return true;
  }
  }
  return !fail("'%s' of @%s %s", quantity.name.c_str(), function.name.c_str(),
               what);
}

bool Planner::evaluate(const std::vector<Expression> &expressions,
                       std::vector<int64_t> &into) {
  for (const Expression &expression : expressions)
    if (!evaluate(expression, into.emplace_back()))
      return false;
  return true;
}

bool Planner::placeBuffers() {
  for (const ManifestBuffer &buffer : function.buffers) {
    Extents extents;
    if (!evaluate(buffer.sizes, extents.sizes))
      return false;
    if (!fitsInMemory(extents.sizes, buffer.type.elementBytes))
      return !fail("%s of @%s has the sizes %s", buffer.name.c_str(),
                   function.name.c_str(), list(extents.sizes).c_str());
    extents.setContiguous();
    int64_t elements = extents.countElements();
    bufferOffsets.push_back(plan->workspaceBytes);
    if (buffer.initial) {
      PlannedFill fill = {plan->workspaceBytes, elements,
                          buffer.type.elementBytes, 0};
      if (!evaluate(*buffer.initial, fill.value))
        return false;
      if (elements > 0)
        plan->fills.push_back(fill);
    }
    int64_t bytes = elements * buffer.type.elementBytes;
    plan->workspaceBytes += (bytes + kWorkspaceAlignment - 1) /
                            kWorkspaceAlignment * kWorkspaceAlignment;
    buffers.push_back(std::move(extents));
  }
  return true;
}

/// The array that `part` of `source` is, with the elements before its first
/// one.
bool Planner::view(const ManifestSource &source,
                   const std::optional<ManifestView> &part, Extents &extents,
                   int64_t &offset) {
  offset = 0;
  if (!part) {
    extents = getExtents(source);
    return true;
  }
  return evaluate(part->offset, offset) &&
         evaluate(part->sizes, extents.sizes) &&
         evaluate(part->strides, extents.strides);
}

bool Planner::planMap(const ManifestParameter &parameter,
                      PlannedParameter &planned) {
  const ManifestType &type = getType(parameter.source);
  Extents extents;
  int64_t offset = 0;
  if (!view(parameter.source, parameter.view, extents, offset))
    return false;
  // An empty array has no map, and kernels copy nothing of it.
  if (std::count(extents.sizes.begin(), extents.sizes.end(), 0)) {
    if (!parameter.isByValue)
      planned.kind = ManifestParameter::Kind::Number;
    return true;
  }
  planned.pointer = point(parameter.source, offset * type.elementBytes);
  planned.map = static_cast<int>(plan->maps.size());
  size_t rank = parameter.map.im2col ? kIm2colRank : parameter.map.box.size();
  if (rank != extents.sizes.size())
    return !fail("a tensor map of @%s is of %zu dimensions, its array of %zu",
                 function.name.c_str(), rank, extents.sizes.size());
  plan->maps.push_back({extents.sizes, extents.strides, parameter.map.box,
                        type.getMapType(), parameter.map.swizzle,
                        parameter.map.l2Promotion, parameter.isByValue,
                        parameter.map.im2col});
  return true;
}

bool Planner::planParameter(const ManifestParameter &parameter,
                            PlannedParameter &planned) {
  planned.kind = parameter.kind;
  switch (parameter.kind) {
  case ManifestParameter::Kind::Number:
    return evaluate(parameter.value, planned.number) &&
           (parameter.fits(planned.number) ||
            !fail("a kernel of @%s takes %s as 32 bits, and it is %lld: legal "
                  "are 0 to 2147483647",
                  function.name.c_str(), parameter.value.getText().c_str(),
                  static_cast<long long>(planned.number)));
  case ManifestParameter::Kind::Pointer:
    planned.pointer = point(parameter.source, 0);
    return true;
  case ManifestParameter::Kind::TensorMap:
    return planMap(parameter, planned);
  }
  return false;
}

bool Planner::planLaunch(const ManifestLaunch &launch) {
  PlannedLaunch planned = {};
  planned.shape.entry = "nmsProgramLaunch";
  planned.shape.hasCluster = !launch.cluster.empty();
  for (int i = 0; i < 3; ++i)
    if (!evaluate(launch.grid[i], planned.shape.grid[i]) ||
        !evaluate(launch.block[i], planned.shape.block[i]) ||
        (planned.shape.hasCluster &&
         !evaluate(launch.cluster[i], planned.shape.cluster[i])))
      return false;
  if (!evaluate(launch.sharedBytes, planned.shape.sharedBytes))
    return false;
  // Numbers of an empty launch may not exist.
  if (planned.shape.grid[0] == 0 || planned.shape.grid[1] == 0 ||
      planned.shape.grid[2] == 0)
    return true;
  planned.kernel = static_cast<int>(
      std::find(kernels.begin(), kernels.end(), launch.kernel) -
      kernels.begin());
  for (const ManifestParameter &parameter : launch.parameters)
    if (!planParameter(parameter, planned.parameters.emplace_back()))
      return false;
  plan->launches.push_back(std::move(planned));
  return true;
}

bool Planner::planResult(const ManifestResult &result) {
  Extents extents;
  int64_t offset = 0;
  if (!view(result.source, result.view, extents, offset))
    return false;
  PlannedPointer pointer =
      point(result.source, result.source.isBuffer
                               ? offset * getType(result.source).elementBytes
                               : offset);
  NmsResult &planned = plan->results.emplace_back();
  planned = {pointer.argument,
             result.type.getKind(),
             pointer.offset,
             static_cast<int32_t>(extents.sizes.size()),
             {},
             {}};
  std::copy(extents.sizes.begin(), extents.sizes.end(), planned.sizes);
  std::copy(extents.strides.begin(), extents.strides.end(), planned.strides);
  return true;
}

std::unique_ptr<ProgramPlan> Planner::run() {
  if (!placeBuffers())
    return nullptr;
  for (const ManifestLaunch &launch : function.launches)
    if (!planLaunch(launch))
      return nullptr;
  for (const ManifestResult &result : function.results)
    if (!planResult(result))
      return nullptr;
  for (const ManifestCheck &check : function.checks) {
    if (buffers[check.buffer].countElements() != 1) {
      fail("%s of @%s is checked, and is not one word",
           function.buffers[check.buffer].name.c_str(), function.name.c_str());
      return nullptr;
    }
    plan->checks.push_back({bufferOffsets[check.buffer], check.packed});
  }
  return std::move(plan);
}

std::unique_ptr<ProgramPlan> nms::planCall(const Manifest &manifest,
                                           const ManifestFunction &function,
                                           const KernelNumbers &kernels,
                                           const NmsArray *arguments,
                                           int count) {
  Planner planner(function, kernels, arguments, count);
  if (!planner.checkArguments())
    return nullptr;
  if (function.cases.empty())
    return planner.run();
  int64_t tokens = 0;
  if (!planner.evaluate(*function.tokens, tokens))
    return nullptr;
  for (const ManifestCase &one : function.cases)
    if (!one.atMost || tokens <= *one.atMost)
      return planCall(manifest, manifest.functions[one.function], kernels,
                      arguments, count);
  return nullptr;
}
