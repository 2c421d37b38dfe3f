//===- MapCopies.h - Tensor maps that calls share ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_PROGRAM_MAPCOPIES_H
#define NM_SPARSE_LIB_RUNTIME_PROGRAM_MAPCOPIES_H

#include <mutex>
#include <vector>

namespace nms {

/// Maps of one shape on devices, by where the array begins. To encode a map
/// costs the host as much as a launch; device copies are never freed, so what
/// is known stays right.
class MapCopies {
public:
  /// Null where there is none.
  void *find(int device, const void *base) const {
    std::lock_guard<std::mutex> lock(mutex);
    for (const Copy &copy : copies)
      if (copy.base == base && copy.device == device)
        return copy.map;
    return nullptr;
  }

  /// In place of the oldest one, where there are many.
  void add(int device, const void *base, void *map) {
    std::lock_guard<std::mutex> lock(mutex);
    if (copies.size() < kMost) {
      copies.push_back({device, base, map});
      return;
    }
    copies[oldest] = {device, base, map};
    oldest = (oldest + 1) % kMost;
  }

private:
  // Allocators give the same few addresses again and again.
  static constexpr size_t kMost = 16;
  struct Copy {
    int device;
    const void *base;
    void *map;
  };
  mutable std::mutex mutex;
  std::vector<Copy> copies;
  size_t oldest = 0;
};

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_PROGRAM_MAPCOPIES_H
