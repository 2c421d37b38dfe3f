//===- CheckIndex.cpp - Are the positions of an index legal? --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Spec/PackTile.h"

#include <cstdio>

using namespace nms;

/// The positions of one window and panel start at `slots`, `stride` elements
/// apart. `batch` is -1 where a message does not name it.
template <typename I>
static int checkWindow(const char *entry, int64_t n, int64_t m, const I *slots,
                       int64_t stride, int64_t batch, int64_t window,
                       int64_t panel) {
  int64_t previous = -1;
  for (int64_t slot = 0; slot < n; ++slot) {
    auto position = static_cast<int64_t>(slots[slot * stride]);
    bool isBelow = position < m;
    if (isBelow && position > previous) {
      previous = position;
      continue;
    }
    char batchText[32] = "";
    if (batch >= 0)
      snprintf(batchText, sizeof(batchText), "batch %lld, ", ll(batch));
    return fail("%s: %swindow %lld, panel %lld: slot %lld holds position %lld, "
                "which %s %lld: positions are 0 to %lld and increase with the "
                "slot; the index is damaged or of another encoding",
                entry, batchText, ll(window), ll(panel), ll(slot), ll(position),
                isBelow ? "is not above that of the slot before,"
                        : "is not below m =",
                isBelow ? ll(previous) : ll(m), ll(m - 1));
  }
  return 0;
}

int nms::checkIndex(const char *entry, int64_t n, int64_t m,
                    const IndexArray &index) {
  if (n < 1 || m < n)
    return fail("%s: %lld:%lld is not legal: n must be 1 to m", entry, ll(n),
                ll(m));
  if (index.rows % n != 0)
    return fail("%s has %lld rows: %lld:%lld wants a multiple of %lld", entry,
                ll(index.rows), ll(n), ll(m), ll(n));
  return dispatchIndex(m, [&](auto type) {
    using I = decltype(type);
    for (int64_t batch = 0; batch < index.batch; ++batch)
      for (int64_t window = 0; window < index.rows / n; ++window)
        for (int64_t panel = 0; panel < index.panels; ++panel) {
          const I *slots =
              static_cast<const I *>(index.data) + batch * index.strideBatch +
              window * n * index.strideRow + panel * index.stridePanel;
          if (int status =
                  checkWindow(entry, n, m, slots, index.strideRow,
                              index.hasBatch ? batch : -1, window, panel))
            return status;
        }
    return 0;
  });
}
