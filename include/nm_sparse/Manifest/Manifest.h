//===- Manifest.h - how to launch kernels, as read --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Manifest.md in structures. Names are resolved and expressions parsed, so
// that what is wrong with a manifest is found when it is read.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_MANIFEST_MANIFEST_H
#define NM_SPARSE_MANIFEST_MANIFEST_H

#include "nm_sparse/Base/Expression.h"
#include "nm_sparse/Base/Im2col.h"
#include "nm_sparse/Packing/Checks.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nms {

constexpr int64_t kDynamicSize = -1;

/// Sizes that an array has at most.
constexpr size_t kMaxManifestRank = 8;

/// memref<?x4096xf16, strided<[?, 1], offset: ?>>, or the type of a number.
struct ManifestType {
  std::string text;
  std::string element; ///< f16, i8, ...
  int64_t elementBytes = 0;
  bool isNumber = false;
  std::vector<int64_t> shape; ///< kDynamicSize where it is `?`.
  /// The strides of a layout that is not row by row without gaps; kDynamicSize
  /// as above.
  std::optional<std::vector<int64_t>> strides;

  static bool parse(std::string_view text, ManifestType &type);

  /// A CUtensorMapDataType; bytes of any meaning are copied as bytes.
  int64_t getMapType() const;
  /// NmsKind of the elements, -1 for none of these.
  int32_t getKind() const;
};

/// Where a pointer comes from: an argument or a buffer.
struct ManifestSource {
  bool isBuffer = false;
  int number = 0;
};

/// A part of an array.
struct ManifestView {
  Expression offset;
  std::vector<Expression> sizes, strides;
};

struct ManifestTensorMap {
  std::vector<int64_t> box; ///< With `im2col`: pixels and channels.
  std::optional<Im2colPixels> im2col;
  int swizzle = 0, l2Promotion = 0; ///< As CUDA numbers them.
};

/// The accesses of a kernel through one of its pointers.
enum class ManifestAccess { None, Read, Write, ReadWrite };

struct ManifestParameter {
  enum class Kind { Number, Pointer, TensorMap };
  Kind kind = Kind::Number;
  std::string type;      ///< i32, ptr, ...
  Expression value;      ///< For a number.
  ManifestSource source; ///< For the others.
  ManifestAccess access = ManifestAccess::ReadWrite;
  int64_t alignment = 16; ///< Bytes.
  ManifestTensorMap map;
  bool isByValue = false; ///< All of the map, rather than its address.
  std::optional<ManifestView> view; ///< That the map is of.

  /// Returns true for a number that the caller passes; others follow from
  /// sizes.
  bool isCallersNumber() const {
    const std::vector<Quantity> &quantities = value.getQuantities();
    return kind == Kind::Number && quantities.size() == 1 &&
           quantities[0].field == Quantity::Field::Value &&
           quantities[0].write() == value.getText();
  }
  /// Returns true if the kernel reads all of `number`, this one's value: it
  /// takes what follows from sizes as 32 bits without a sign.
  bool fits(int64_t number) const {
    return type != "i32" || isCallersNumber() ||
           (number >= 0 && number <= INT32_MAX);
  }
};

struct ManifestLaunch {
  std::string kernel;
  std::vector<Expression> grid, block, cluster; ///< Three, or no cluster.
  Expression sharedBytes;
  std::vector<ManifestParameter> parameters;
};

struct ManifestBuffer {
  std::string name;
  ManifestType type;
  std::vector<Expression> sizes;
  std::optional<Expression> initial;
};

struct ManifestResult {
  ManifestType type;
  ManifestSource source;
  std::optional<ManifestView> view;
};

/// A check of the word that kernels leave.
struct ManifestCheck {
  int buffer = 0;
  PackedCheck packed;
};

struct ManifestCase {
  std::optional<int64_t> atMost;
  int function = -1;
};

struct ManifestArgument {
  std::string name;
  std::string label; ///< Its name in the program; may be empty.
  ManifestType type;
  /// The name of the component if it belongs to a packed weight, else empty.
  std::string component;
  int64_t weight = -1; ///< Its number, for a component.
};

/// A packed weight, whose components are arguments.
struct ManifestWeight {
  int64_t number = 0;
  std::string encoding, elementType;
  std::vector<int64_t> shape; ///< As the program declares it.
};

struct ManifestFunction {
  /// The argument or buffer called `name`; none if there is no such one.
  std::optional<ManifestSource> findSource(std::string_view name) const;

  std::string name;
  std::vector<ManifestArgument> arguments;
  std::vector<ManifestWeight> weights;
  std::vector<ManifestBuffer> buffers;
  std::vector<ManifestLaunch> launches;
  std::vector<ManifestResult> results;
  std::vector<ManifestCheck> checks;
  /// For a function that selects others.
  std::optional<Expression> tokens;
  std::vector<ManifestCase> cases;
};

struct ManifestKernel {
  std::string name;
  /// It waits for the launch before it itself, so that it may start early
  /// (programmatic stream serialization).
  bool waits = false;
};

struct Manifest {
  std::vector<ManifestKernel> kernels;
  std::vector<ManifestFunction> functions;

  /// False, with the reason recorded, where `text` is no manifest.
  static bool parse(std::string_view text, Manifest &manifest);
};

} // namespace nms

#endif // NM_SPARSE_MANIFEST_MANIFEST_H
