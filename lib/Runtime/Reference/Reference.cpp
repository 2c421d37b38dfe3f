//===- Reference.cpp - float64 product on the CPU -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The usual blocked product: a task computes one block of y, packs the blocks
// of x and w that it needs into contiguous panels, and multiplies them with a
// small kernel that keeps its part of y in registers. The kernel is compiled
// for several instruction sets and chosen when the program runs.
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Runtime/Reference.h"
#include "../Driver/Context.h"
#include "../Support/ErrorState.h"
#include "ReferenceGPU.h"
#include "nm_sparse/Base/Parallel.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace nms;

namespace {

constexpr int64_t blockM = 192, blockN = 192, blockK = 256;
constexpr double gpuThreshold = 1e9; // flops

/// y[i][j] += sum over l of x[l][i] * w[l][j], with y's row stride ldy and `MR`
/// rows of `NV` vectors of `Width` elements. The vectors are spelled out
/// because compilers disagree on whether they see them in plain loops.
template <int MR, int NV, int Width>
inline __attribute__((always_inline)) void
multiplyPanels(int64_t depth, const double *x, const double *w, double *y,
               int64_t ldy) {
  typedef double Vector __attribute__((vector_size(Width * sizeof(double))));
  Vector acc[MR][NV] = {};
  for (int64_t l = 0; l < depth; ++l) {
    Vector right[NV];
    memcpy(right, w, sizeof(right));
    for (int i = 0; i < MR; ++i)
      for (int j = 0; j < NV; ++j)
        acc[i][j] += right[j] * x[i];
    x += MR;
    w += NV * Width;
  }
  for (int i = 0; i < MR; ++i)
    for (int j = 0; j < NV; ++j)
      for (int e = 0; e < Width; ++e)
        y[i * ldy + j * Width + e] += acc[i][j][e];
}

using PanelKernel = void (*)(int64_t, const double *, const double *, double *,
                             int64_t);

struct Kernel {
  int mr, nr;
  PanelKernel run;
};

void runBaseline(int64_t depth, const double *x, const double *w, double *y,
                 int64_t ldy) {
  multiplyPanels<4, 2, 2>(depth, x, w, y, ldy);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void runAvx2(int64_t depth, const double *x,
                                                 const double *w, double *y,
                                                 int64_t ldy) {
  multiplyPanels<6, 2, 4>(depth, x, w, y, ldy);
}

__attribute__((target("avx512f,avx512vl,avx2,fma"))) void
runAvx512(int64_t depth, const double *x, const double *w, double *y,
          int64_t ldy) {
  multiplyPanels<6, 2, 8>(depth, x, w, y, ldy);
}
#endif

Kernel chooseKernel() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    return {6, 16, runAvx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {6, 8, runAvx2};
#endif
  return {4, 4, runBaseline};
}

/// Copies `count` x `depth` elements into panels of `width`, zero-padded:
/// out[panel][l][i].
void packPanels(const double *src, int64_t count, int64_t strideCount,
                int64_t depth, int64_t strideDepth, int64_t width,
                double *out) {
  for (int64_t first = 0; first < count; first += width, out += width * depth) {
    int64_t rows = std::min(width, count - first);
    const double *from = src + first * strideCount;
    if (rows < width)
      std::fill_n(out, width * depth, 0.0);
    if (strideCount == 1) {
      for (int64_t l = 0; l < depth; ++l)
        std::copy_n(from + l * strideDepth, rows, out + l * width);
      continue;
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t l = 0; l < depth; ++l)
        out[l * width + i] = from[i * strideCount + l * strideDepth];
  }
}

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// One block of y: rows from m0, columns from n0.
void multiplyBlock(const Product &p, const Kernel &kernel, int64_t batch,
                   int64_t m0, int64_t n0) {
  int64_t rows = std::min(blockM, p.m - m0), cols = std::min(blockN, p.n - n0);
  int64_t paddedRows = roundUp(rows, kernel.mr);
  int64_t paddedCols = roundUp(cols, kernel.nr);
  std::vector<double> x(static_cast<size_t>(paddedRows * blockK));
  std::vector<double> w(static_cast<size_t>(paddedCols * blockK));
  std::vector<double> sum(static_cast<size_t>(paddedRows * paddedCols));
  for (int64_t k0 = 0; k0 < p.k; k0 += blockK) {
    int64_t depth = std::min(blockK, p.k - k0);
    packPanels(p.x + batch * p.xsb + m0 * p.xsm + k0 * p.xsk, rows, p.xsm,
               depth, p.xsk, kernel.mr, x.data());
    packPanels(p.w + batch * p.wsb + n0 * p.wsn + k0 * p.wsk, cols, p.wsn,
               depth, p.wsk, kernel.nr, w.data());
    for (int64_t j = 0; j < paddedCols; j += kernel.nr)
      for (int64_t i = 0; i < paddedRows; i += kernel.mr)
        kernel.run(depth, x.data() + i * depth, w.data() + j * depth,
                   sum.data() + i * paddedCols + j, paddedCols);
  }
  double *y = p.y + batch * p.ysb + m0 * p.ysm + n0 * p.ysn;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      y[i * p.ysm + j * p.ysn] += sum[static_cast<size_t>(i * paddedCols + j)];
}

void multiplyOnCPU(const Product &p, int64_t firstBatch) {
  const Kernel kernel = chooseKernel();
  int64_t rowBlocks = (p.m + blockM - 1) / blockM;
  int64_t colBlocks = (p.n + blockN - 1) / blockN;
  int64_t perBatch = rowBlocks * colBlocks;
  auto task = [&](int64_t index) {
    int64_t batch = firstBatch + index / perBatch, block = index % perBatch;
    multiplyBlock(p, kernel, batch, block / colBlocks * blockM,
                  block % colBlocks * blockN);
  };
  int64_t tasks = perBatch * (p.batch - firstBatch);
  // Starting threads costs more than a small product.
  if (p.flops() < 1e6)
    for (int64_t index = 0; index < tasks; ++index)
      task(index);
  else
    parallelTasks(tasks, task);
}

bool gpuAllowed() {
  if (isDriverReplaced())
    return false;
  const char *choice = getenv("NM_SPARSE_REFERENCE");
  return !choice || strcmp(choice, "cpu") != 0;
}

} // namespace

extern "C" int nmsReferenceMatmul(int64_t batch, int64_t m, int64_t n,
                                  int64_t k, const double *x, int64_t xsb,
                                  int64_t xsm, int64_t xsk, const double *w,
                                  int64_t wsb, int64_t wsk, int64_t wsn,
                                  double *y, int64_t ysb, int64_t ysm,
                                  int64_t ysn) {
  if (batch < 0 || m < 0 || n < 0 || k < 0)
    return fail("nmsReferenceMatmul: batch=%lld m=%lld n=%lld k=%lld: sizes "
                "must not be negative",
                static_cast<long long>(batch), static_cast<long long>(m),
                static_cast<long long>(n), static_cast<long long>(k));
  if (batch == 0 || m == 0 || n == 0 || k == 0)
    return 0;
  if (!x || !w || !y)
    return fail("nmsReferenceMatmul: an array is null (x=%p, w=%p, y=%p)",
                static_cast<const void *>(x), static_cast<const void *>(w),
                static_cast<void *>(y));
  Product product = {batch, m,   n,   k,   x, xsb, xsm, xsk,
                     w,     wsb, wsk, wsn, y, ysb, ysm, ysn};
  int64_t done = 0;
  if (product.flops() > gpuThreshold && gpuAllowed())
    done = multiplyOnGPU(product);
  if (done < batch)
    multiplyOnCPU(product, done);
  return 0;
}

extern "C" int nmsReferenceSparseMatmul(int64_t batch, int64_t m, int64_t n,
                                        int64_t k, const double *x, int64_t xsb,
                                        int64_t xsm, int64_t xsk,
                                        const double *w, int64_t wsb,
                                        int64_t wsk, int64_t wsn, double *y,
                                        int64_t ysb, int64_t ysm, int64_t ysn) {
  struct Place {
    int64_t batch, token, step;
    double value;
  };
  std::vector<Place> special;
  auto forEach = [&](auto visit) {
    for (int64_t b = 0; x && b < batch; ++b)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t l = 0; l < k; ++l)
          visit(b, i, l, x[b * xsb + i * xsm + l * xsk]);
  };
  forEach([&](int64_t b, int64_t i, int64_t l, double value) {
    if (!std::isfinite(value))
      special.push_back({b, i, l, value});
  });
  if (special.empty())
    return nmsReferenceMatmul(batch, m, n, k, x, xsb, xsm, xsk, w, wsb, wsk,
                              wsn, y, ysb, ysm, ysn);
  // Finite numbers are multiplied as ever, and the rest added after it: in sums
  // of NaN and infinities, the order does not matter.
  std::vector<double> finite;
  finite.reserve(static_cast<size_t>(batch * m * k));
  forEach([&](int64_t, int64_t, int64_t, double value) {
    finite.push_back(std::isfinite(value) ? value : 0.0);
  });
  if (nmsReferenceMatmul(batch, m, n, k, finite.data(), m * k, k, 1, w, wsb,
                         wsk, wsn, y, ysb, ysm, ysn))
    return 1;
  for (const Place &place : special)
    for (int64_t j = 0; j < n; ++j) {
      double weight = w[place.batch * wsb + place.step * wsk + j * wsn];
      if (weight != 0)
        y[place.batch * ysb + place.token * ysm + j * ysn] +=
            place.value * weight;
    }
  return 0;
}
