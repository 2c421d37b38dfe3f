//===- Bench.cpp - Timing recorded launches, alone and against cuBLAS -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CublasApi.h"
#include "RecorderState.h"
#include "Replay.h"
#include "nm_sparse/Runtime/Random.h"

#include <algorithm>
#include <climits>
#include <memory>

using namespace nms;

namespace {

struct Problem {
  int32_t kind;
  int m, n, k, batch;
  int type;      // cuBLAS data type
  int64_t bytes; // of an element
};

bool makeProblem(int32_t kind, int64_t m, int64_t n, int64_t k, int64_t batch,
                 Problem &problem) {
  for (int64_t size : {m, n, k, batch})
    if (size < 1 || size > INT_MAX)
      return !fail("cuBLAS comparison: m=%lld n=%lld k=%lld batch=%lld: each "
                   "must be 1 to 2147483647",
                   static_cast<long long>(m), static_cast<long long>(n),
                   static_cast<long long>(k), static_cast<long long>(batch));
  switch (kind) {
  case NMS_F32:
    problem.type = cublas::dataF32;
    break;
  case NMS_F16:
    problem.type = cublas::dataF16;
    break;
  case NMS_BF16:
    problem.type = cublas::dataBF16;
    break;
  default:
    return !fail("cuBLAS comparison: element kind %s (%d) is not timed: use "
                 "f32, f16 or bf16",
                 nmsKindName(kind), kind);
  }
  problem.kind = kind;
  problem.m = static_cast<int>(m);
  problem.n = static_cast<int>(n);
  problem.k = static_cast<int>(k);
  problem.batch = static_cast<int>(batch);
  problem.bytes = nmsKindBytes(kind);
  return true;
}

/// The cuBLAS side: handle, workspace and sets of operands.
class Dense {
public:
  Dense(const Context &cu, const Problem &problem, int count)
      : cu(cu), p(problem), workspace(cu, workspaceBytes) {
    for (int set = 0; set < count; ++set)
      sets.push_back(std::make_unique<Operands>(
          cu, size(p.m, p.k), size(p.k, p.n), size(p.m, p.n)));
  }
  ~Dense() {
    if (handle)
      (void)api->destroy(handle);
  }
  Dense(const Dense &) = delete;
  Dense &operator=(const Dense &) = delete;

  bool prepare(cuda::Stream stream) {
    if (!workspace)
      return false;
    for (const auto &set : sets)
      if (!set->x || !set->w || !set->y)
        return false;
    api = cublas::api();
    return api && fill(&Operands::x, size(p.m, p.k), 1) &&
           fill(&Operands::w, size(p.k, p.n), 2) &&
           cublas::check(api->create(&handle), "creating a cuBLAS handle") &&
           cublas::check(api->getVersion(handle, &version),
                         "reading the version of cuBLAS") &&
           cublas::check(api->setStream(handle, stream),
                         "giving cuBLAS its stream") &&
           cublas::check(
               api->setWorkspace(handle, workspace.get(), workspaceBytes),
               "giving cuBLAS its workspace");
  }

  /// Row-major y = x * w is column-major y' = w' * x'.
  bool multiply(bool weightTransposed, int set) {
    const auto &[x, w, y] = *sets[static_cast<size_t>(set)];
    const float one = 1.0f, zero = 0.0f;
    int op = weightTransposed ? cublas::opT : cublas::opN;
    int ldw = weightTransposed ? p.k : p.n;
    cublas::Status status;
    if (p.batch == 1) {
      status =
          api->gemmEx(handle, op, cublas::opN, p.n, p.m, p.k, &one, w.get(),
                      p.type, ldw, x.get(), p.type, p.k, &zero, y.get(), p.type,
                      p.n, cublas::compute32F, cublas::gemmDefault);
    } else {
      auto area = [](int a, int b) {
        return static_cast<long long>(a) * static_cast<long long>(b);
      };
      status = api->gemmBatched(handle, op, cublas::opN, p.n, p.m, p.k, &one,
                                w.get(), p.type, ldw, area(p.k, p.n), x.get(),
                                p.type, p.k, area(p.m, p.k), &zero, y.get(),
                                p.type, p.n, area(p.m, p.n), p.batch,
                                cublas::compute32F, cublas::gemmDefault);
    }
    return cublas::check(status, "running the cuBLAS product");
  }

  int version = 0;

private:
  struct Operands {
    Operands(const Context &cu, size_t xBytes, size_t wBytes, size_t yBytes)
        : x(cu, xBytes), w(cu, wBytes), y(cu, yBytes) {}
    OwnedBuffer x, w, y;
  };

  // What cuBLAS recommends for Hopper and newer.
  static constexpr size_t workspaceBytes = size_t(64) << 20;

  size_t size(int rows, int columns) const {
    return static_cast<size_t>(p.batch) * static_cast<size_t>(rows) *
           static_cast<size_t>(columns) * static_cast<size_t>(p.bytes);
  }

  bool fill(OwnedBuffer Operands::*operand, size_t bytes, uint64_t stream) {
    // One block is made and repeated: enough random bits for an honest power
    // draw, without spending minutes on the CPU.
    size_t block = std::min(bytes, size_t(8) << 20);
    std::vector<char> host(block);
    if (nmsRandomNormal(p.kind, host.data(),
                        static_cast<int64_t>(block) / p.bytes, 1, stream))
      return false;
    for (const auto &set : sets)
      for (size_t done = 0; done < bytes; done += block)
        if (!cu.check(cu->memcpyHtoD(((*set).*operand).device() + done,
                                     host.data(),
                                     std::min(block, bytes - done)),
                      "copying random operands to the device"))
          return false;
    return true;
  }

  const Context &cu;
  const Problem &p;
  const cublas::Api *api = nullptr;
  cublas::Handle handle = nullptr;
  std::vector<std::unique_ptr<Operands>> sets;
  OwnedBuffer workspace;
};

int benchDense(const char *entry, bool withRecorded, const Problem &problem,
               const NmsBenchOptions *options, NmsVersus &result) {
  Context cu;
  if (!cu)
    return 1;
  int sets = getSets(options);
  if (withRecorded && !checkRecorded(entry, sets))
    return 1;
  OwnedStream stream(cu);
  Dense dense(cu, problem, sets);
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
  result.cublasVersion = dense.version;
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
  Problem problem;
  if (!result)
    return fail("nmsBenchAgainstCublas: the result pointer is null: pass a "
                "struct");
  if (!makeProblem(kind, m, n, k, batch, problem))
    return 1;
  return benchDense("nmsBenchAgainstCublas", true, problem, options, *result);
}

extern "C" int nmsBenchCublas(int32_t kind, int64_t m, int64_t n, int64_t k,
                              int64_t batch, const NmsBenchOptions *options,
                              NmsVersus *result) {
  Problem problem;
  if (!result)
    return fail("nmsBenchCublas: the result pointer is null: pass a struct");
  if (!makeProblem(kind, m, n, k, batch, problem))
    return 1;
  return benchDense("nmsBenchCublas", false, problem, options, *result);
}
