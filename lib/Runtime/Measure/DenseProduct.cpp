//===- DenseProduct.cpp - cuBLAS on random operands -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DenseProduct.h"
#include "nm_sparse/Base/Random.h"

#include <algorithm>
#include <climits>

using namespace nms;

/// The size that cuBLAS recommends for Hopper and newer.
static constexpr size_t workspaceBytes = size_t(64) << 20;

bool nms::makeDenseProblem(int32_t kind, int64_t m, int64_t n, int64_t k,
                           int64_t batch, DenseProblem &problem) {
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

DenseProduct::DenseProduct(const Context &cu, const DenseProblem &problem,
                           int count)
    : cu(cu), p(problem), workspace(cu, workspaceBytes) {
  for (int set = 0; set < count; ++set)
    sets.push_back(std::make_unique<Operands>(cu, size(p.m, p.k),
                                              size(p.k, p.n), size(p.m, p.n)));
}

DenseProduct::~DenseProduct() {
  if (handle)
    (void)api->destroy(handle);
}

bool DenseProduct::prepare(cuda::Stream stream) {
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
bool DenseProduct::multiply(bool weightTransposed, int set) {
  const auto &[x, w, y] = *sets[static_cast<size_t>(set)];
  const float one = 1.0f, zero = 0.0f;
  int op = weightTransposed ? cublas::opT : cublas::opN;
  int ldw = weightTransposed ? p.k : p.n;
  cublas::Status status;
  if (p.batch == 1) {
    status = api->gemmEx(handle, op, cublas::opN, p.n, p.m, p.k, &one, w.get(),
                         p.type, ldw, x.get(), p.type, p.k, &zero, y.get(),
                         p.type, p.n, cublas::compute32F, cublas::gemmDefault);
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

size_t DenseProduct::size(int rows, int columns) const {
  return static_cast<size_t>(p.batch) * static_cast<size_t>(rows) *
         static_cast<size_t>(columns) * static_cast<size_t>(p.bytes);
}

bool DenseProduct::fill(OwnedBuffer Operands::*operand, size_t bytes,
                        uint64_t stream) {
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
                                   host.data(), std::min(block, bytes - done)),
                    "copying random operands to the device"))
        return false;
  return true;
}
