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

int benchDense(const char *entry, bool withRecorded,
               const DenseProblem &problem, const NmsBenchOptions *options,
               NmsVersus &result) {
  Context cu;
  if (!cu)
    return 1;
  int sets = getSets(options);
  if (withRecorded && !checkRecorded(entry, sets))
    return 1;
  OwnedStream stream(cu);
  DenseProduct dense(cu, problem, sets);
  if (!stream || !dense.prepare(stream.get()))
    return 1;
  std::vector<Work> works = {
      [&](cuda::Stream, int set) { return dense.multiply(false, set); },
      [&](cuda::Stream, int set) { return dense.multiply(true, set); }};
  // The first call of a shape loads kernels, which a capture does not allow.
  for (const Work &work : works)
    if (!work(stream.get(), 0))
      return 1;
  bool memsets = options && options->includeMemsets;
  if (withRecorded)
    works.emplace_back([&cu, memsets, sets](cuda::Stream target, int set) {
      return replayRecorded(cu, target, memsets, set, sets);
    });
  std::vector<NmsTiming> timings;
  if (!timeInterleaved(cu, stream.get(), works, options, timings))
    return 1;

  result = {};
  result.cublasNN = timings[0];
  result.cublasTN = timings[1];
  result.cublasBestUs = std::min(timings[0].medianUs, timings[1].medianUs);
  double flops = 2.0 * problem.batch * problem.m * problem.n * problem.k;
  if (result.cublasBestUs > 0)
    result.cublasBestTflops = flops / result.cublasBestUs * 1e-6;
  if (withRecorded) {
    result.ours = timings[2];
    if (result.ours.medianUs > 0) {
      result.speedup = result.cublasBestUs / result.ours.medianUs;
      result.oursTflops = flops / result.ours.medianUs * 1e-6;
    }
  }
  result.cublasVersion = dense.getVersion();
  return 0;
}

} // namespace

extern "C" int nmsBenchRecorded(const NmsBenchOptions *options,
                                NmsTiming *result) {
  if (!result)
    return fail("nmsBenchRecorded: the result pointer is null: pass a struct");
  Context cu;
  if (!cu)
    return 1;
  int sets = getSets(options);
  if (!checkRecorded("nmsBenchRecorded", sets))
    return 1;
  OwnedStream stream(cu);
  bool memsets = options && options->includeMemsets;
  std::vector<NmsTiming> timings;
  if (!stream ||
      !timeInterleaved(cu, stream.get(),
                       {[&cu, memsets, sets](cuda::Stream target, int set) {
                         return replayRecorded(cu, target, memsets, set, sets);
                       }},
                       options, timings))
    return 1;
  *result = timings[0];
  return 0;
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
  return benchDense("nmsBenchAgainstCublas", true, problem, options, *result);
}

extern "C" int nmsBenchCublas(int32_t kind, int64_t m, int64_t n, int64_t k,
                              int64_t batch, const NmsBenchOptions *options,
                              NmsVersus *result) {
  DenseProblem problem;
  if (!result)
    return fail("nmsBenchCublas: the result pointer is null: pass a struct");
  if (!makeDenseProblem(kind, m, n, k, batch, problem))
    return 1;
  return benchDense("nmsBenchCublas", false, problem, options, *result);
}
