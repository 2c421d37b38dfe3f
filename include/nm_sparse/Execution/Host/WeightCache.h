//===- WeightCache.h - the random weight that was made last -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drawing, pruning and packing a weight takes longer than to run its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_EXECUTION_HOST_WEIGHTCACHE_H
#define NM_SPARSE_EXECUTION_HOST_WEIGHTCACHE_H

#include "nm_sparse/Execution/Host/CompiledModule.h"
#include <memory>
#include <mutex>
#include <string>

namespace mlir::nm_sparse {

/// A random weight, and the components that it is packed into.
struct RandomWeight {
  HostArray dense;
  std::vector<Argument> packed;
};

/// Keeps one weight, for programs that have the same and other activations.
/// Several threads may use it.
class WeightCache {
public:
  /// Null where another one, or none, was put last.
  std::shared_ptr<const RandomWeight> find(const std::string &key) {
    std::lock_guard<std::mutex> lock(mutex);
    return key == ownKey ? weight : nullptr;
  }
  void put(std::string key, std::shared_ptr<const RandomWeight> made) {
    std::lock_guard<std::mutex> lock(mutex);
    ownKey = std::move(key);
    weight = std::move(made);
  }

private:
  std::mutex mutex;
  std::string ownKey;
  std::shared_ptr<const RandomWeight> weight;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_EXECUTION_HOST_WEIGHTCACHE_H
