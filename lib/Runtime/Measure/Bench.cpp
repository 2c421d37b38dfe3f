//===- Bench.cpp - Timing recorded launches, alone and against cuBLAS -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Driver/RecorderState.h"
#include "DenseProduct.h"
#include "Replay.h"

#include <algorithm>

using namespace nms;

namespace {

/// Alternates the dense product with `programs` recorded ones, whose times go
/// to `ours`.
int benchDense(const char *entry, int programs, const DenseProblem &problem,
               const NmsBenchOptions *options, NmsTiming *ours,
               NmsVersus &result) {
  Context cu;
  if (!cu)
    return 1;
  int sets = getSets(options);
  if (programs && !checkRecorded(entry, programs, sets))
    return 1;
  OwnedStream stream(cu);
  DenseProduct dense(cu, problem, sets);
  if (!stream || !dense.prepare(stream.get()))
    return 1;
  std::vector<Work> works = {
      [&](cuda::Stream, int set) { return dense.multiply(true, set); }};
  if (problem.form->readsBothLayouts)
    works.emplace_back(
        [&](cuda::Stream, int set) { return dense.multiply(false, set); });
  size_t first = works.size();
  // The first call of a shape loads kernels, which a capture does not allow.
  for (const Work &work : works)
    if (!work(stream.get(), 0))
      return 1;
  bool memsets = options && options->includeMemsets;
  for (Work &work : getRecorded(cu, programs, memsets, sets))
    works.push_back(std::move(work));
  std::vector<NmsTiming> timings;
  if (!timeInterleaved(cu, stream.get(), works, options, timings))
    return 1;

  result = {};
  result.cublasTN = timings[0];
  result.cublasNN = timings[first - 1];
  result.cublasBestUs =
      std::min(result.cublasNN.medianUs, result.cublasTN.medianUs);
  double flops = 2.0 * problem.batch * problem.m * problem.n * problem.k;
  if (result.cublasBestUs > 0)
    result.cublasBestTflops = flops / result.cublasBestUs * 1e-6;
  for (int program = 0; program < programs; ++program)
    ours[program] = timings[first + static_cast<size_t>(program)];
  result.cublasVersion = dense.getVersion();
  return 0;
}

/// Alternates recorded programs without a dense product.
int benchAlone(const char *entry, int programs, const NmsBenchOptions *options,
               NmsTiming *result) {
  Context cu;
  if (!cu)
    return 1;
  int sets = getSets(options);
  if (!checkRecorded(entry, programs, sets))
    return 1;
  bool memsets = options && options->includeMemsets;
  OwnedStream stream(cu);
  std::vector<NmsTiming> timings;
  if (!stream || !timeInterleaved(cu, stream.get(),
                                  getRecorded(cu, programs, memsets, sets),
                                  options, timings))
    return 1;
  std::copy(timings.begin(), timings.end(), result);
  return 0;
}

} // namespace

extern "C" int nmsBenchRecorded(const NmsBenchOptions *options,
                                NmsTiming *result) {
  if (!result)
    return fail("nmsBenchRecorded: the result pointer is null: pass a struct");
  return benchAlone("nmsBenchRecorded", 1, options, result);
}

extern "C" int nmsBenchAgainstCublas(int32_t kind, int64_t m, int64_t n,
                                     int64_t k, int64_t batch,
                                     const NmsBenchOptions *options,
                                     NmsVersus *result) {
  DenseProblem problem;
  if (!result)
    return fail("nmsBenchAgainstCublas: the result pointer is null: pass a "
                "struct");
  if (!makeDenseProblem(kind, m, n, k, batch, problem))
    return 1;
  NmsTiming ours = {};
  if (benchDense("nmsBenchAgainstCublas", 1, problem, options, &ours, *result))
    return 1;
  result->ours = ours;
  if (ours.medianUs > 0) {
    double flops = 2.0 * problem.batch * problem.m * problem.n * problem.k;
    result->speedup = result->cublasBestUs / ours.medianUs;
    result->oursTflops = flops / ours.medianUs * 1e-6;
  }
  return 0;
}

extern "C" int nmsBenchPrograms(int32_t kind, int64_t m, int64_t n, int64_t k,
                                int64_t batch, const NmsBenchOptions *options,
                                NmsTiming *timings, int32_t count,
                                NmsVersus *dense) {
  constexpr const char *entry = "nmsBenchPrograms";
  if (!timings || count < 1)
    return fail("%s: %d programs, and %s for their times: pass one element for "
                "each, of one at least",
                entry, count, timings ? "an array" : "a null pointer");
  if (!dense)
    return benchAlone(entry, count, options, timings);
  DenseProblem problem;
  if (!makeDenseProblem(kind, m, n, k, batch, problem))
    return 1;
  return benchDense(entry, count, problem, options, timings, *dense);
}

extern "C" int nmsBenchCublas(int32_t kind, int64_t m, int64_t n, int64_t k,
                              int64_t batch, const NmsBenchOptions *options,
                              NmsVersus *result) {
  DenseProblem problem;
  if (!result)
    return fail("nmsBenchCublas: the result pointer is null: pass a struct");
  if (!makeDenseProblem(kind, m, n, k, batch, problem))
    return 1;
  return benchDense("nmsBenchCublas", 0, problem, options, nullptr, *result);
}
