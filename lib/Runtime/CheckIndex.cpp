//===- CheckIndex.cpp - Are the positions of an index legal? --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ErrorState.h"
#include "Memref.h"
#include "PackTile.h"

#include <cstdio>

using namespace nms;

namespace {

constexpr const char *entry = "check index";

long long ll(int64_t value) { return static_cast<long long>(value); }

struct Params {
  int64_t n, m, argument;
};

/// The positions of one window and panel start at `slots`, `stride` elements
/// apart.
template <typename I>
int checkWindow(const I *slots, int64_t stride, const Params &params,
                int64_t batch, int64_t window, int64_t panel) {
  int64_t previous = -1;
  for (int64_t slot = 0; slot < params.n; ++slot) {
    auto position = static_cast<int64_t>(slots[slot * stride]);
    bool isBelow = position < params.m;
    if (isBelow && position > previous) {
      previous = position;
      continue;
    }
    char batchText[32] = "";
    if (batch >= 0)
      snprintf(batchText, sizeof(batchText), "batch %lld, ", ll(batch));
    return fail("%s: argument %lld: %swindow %lld, panel %lld: slot %lld holds "
                "position %lld, which %s %lld: positions are 0 to %lld and "
                "increase with the slot; the index is damaged or of another "
                "encoding",
                entry, ll(params.argument), batchText, ll(window), ll(panel),
                ll(slot), ll(position),
                isBelow ? "is not above that of the slot before,"
                        : "is not below m =",
                isBelow ? ll(previous) : ll(params.m), ll(params.m - 1));
  }
  return 0;
}

int checkIndex(int64_t rank, const void *descriptor, const Params &params) {
  MemrefView view(rank, descriptor);
  int64_t rows = view.sizes[rank - 2], panels = view.sizes[rank - 1];
  int64_t rowStride = view.strides[rank - 2];
  int64_t panelStride = view.strides[rank - 1];
  if (rows % params.n != 0)
    return fail("%s: argument %lld has %lld rows: %lld:%lld wants a multiple "
                "of %lld",
                entry, ll(params.argument), ll(rows), ll(params.n),
                ll(params.m), ll(params.n));
  if (view.elements() == 0)
    return 0;
  return dispatchIndex(params.m, [&](auto type) {
    using I = decltype(type);
    const I *base = static_cast<const I *>(view.aligned) + view.offset;
    for (int64_t batch = 0; batch < (rank == 3 ? view.sizes[0] : 1); ++batch)
      for (int64_t window = 0; window < rows / params.n; ++window)
        for (int64_t panel = 0; panel < panels; ++panel) {
          const I *slots = base + window * params.n * rowStride +
                           panel * panelStride +
                           (rank == 3 ? batch * view.strides[0] : 0);
          if (int status = checkWindow(slots, rowStride, params,
                                       rank == 3 ? batch : -1, window, panel))
            return status;
        }
    return 0;
  });
}

int checkArguments(int64_t rank, const void *descriptor,
                   const int64_t *values) {
  if (rank != 2 && rank != 3)
    return fail("%s: rank %lld is not legal: an index has rank 2, or 3 with a "
                "leading batch dimension",
                entry, ll(rank));
  if (!descriptor || !values)
    return fail("%s: the descriptor or the parameters are null", entry);
  Params params = {values[0], values[1], values[2]};
  if (params.n < 1 || params.m < params.n)
    return fail("%s: %lld:%lld is not legal: n must be 1 to m", entry,
                ll(params.n), ll(params.m));
  return checkIndex(rank, descriptor, params);
}

} // namespace

extern "C" void nmsRuntimeCheckIndex(int64_t rank, void *indexDesc,
                                     const int64_t *params) {
  if (checkArguments(rank, indexDesc, params))
    raise();
}
