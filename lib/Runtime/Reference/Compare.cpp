//===- Compare.cpp - Comparison with a float64 reference ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Support/ErrorState.h"
#include "nm_sparse/Base/Element.h"
#include "nm_sparse/Runtime/Reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace nms;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <typename E>
NmsComparison compare(const typename E::Storage *got, const double *want,
                      int64_t count) {
  NmsComparison result = {};
  result.worstIndex = count > 0 ? 0 : -1;
  int64_t firstMismatch = -1;
  // Squares are scaled so that the largest finite doubles do not overflow.
  double scale = 0;
  for (int64_t i = 0; i < count; ++i) {
    double magnitude = std::fabs(want[i]);
    if (magnitude < infinity)
      scale = std::max(scale, magnitude);
  }
  double inverse = scale > 0x1p-1000 ? 1 / scale : 1;
  double errorSquares = 0, wantSquares = 0;
  for (int64_t i = 0; i < count; ++i) {
    double g = E::toDouble(got[i]), w = want[i];
    bool gNan = g != g, wNan = w != w;
    bool gInf = std::fabs(g) == infinity, wInf = std::fabs(w) == infinity;
    if (gNan || wNan || gInf || wInf) {
      bool mismatch = gNan != wNan;
      result.nanMismatches += mismatch;
      if (!gNan && !wNan && g != w) {
        ++result.infMismatches;
        mismatch = true;
      }
      if (mismatch && firstMismatch < 0)
        firstMismatch = i;
      continue;
    }
    double error = std::fabs(g - w);
    if (error > result.maxAbsError) {
      result.maxAbsError = error;
      result.worstIndex = i;
    }
    double scaledError = error * inverse, scaledWant = w * inverse;
    errorSquares += scaledError * scaledError;
    wantSquares += scaledWant * scaledWant;
  }
  if (wantSquares > 0)
    result.relativeError = std::sqrt(errorSquares / wantSquares);
  else if (result.maxAbsError > 0)
    result.relativeError = infinity;
  if (firstMismatch >= 0) {
    result.relativeError = result.maxAbsError = infinity;
    result.worstIndex = firstMismatch;
  }
  if (result.worstIndex >= 0) {
    result.worstGot = E::toDouble(got[result.worstIndex]);
    result.worstWant = want[result.worstIndex];
  }
  return result;
}

} // namespace

extern "C" int nmsCompare(int32_t kind, const void *got, const double *want,
                          int64_t count, NmsComparison *result) {
  if (!result || count < 0 || (count > 0 && (!got || !want)))
    return fail("nmsCompare: %lld elements of %p and %p into %p: pass two "
                "arrays, a count that is not negative and a result",
                static_cast<long long>(count), got,
                static_cast<const void *>(want), static_cast<void *>(result));
  bool known = dispatchKind(kind, [&](auto element) {
    using E = decltype(element);
    *result =
        compare<E>(static_cast<const typename E::Storage *>(got), want, count);
  });
  if (!known)
    return fail("nmsCompare: element kind %d is unknown: use one of NmsKind (0 "
                "to 5)",
                kind);
  return 0;
}
