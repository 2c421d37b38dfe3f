//===- DenseProduct.cpp - cuBLAS on random operands -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DenseProduct.h"
#include "nm_sparse/Base/Random.h"

#include <algorithm>

using namespace nms;

DenseProduct::DenseProduct(const Context &cu, const DenseProblem &problem,
                           int count)
    : cu(cu), p(problem), workspace(cu, workspaceBytes),
      library(problem.form->isLt ? makeCublasLtProduct(cu, problem)
                                 : makeCublasProduct(problem)) {
  const DenseForm &form = *p.form;
  for (int set = 0; set < count; ++set)
    sets.push_back(std::make_unique<Operands>(cu, size(p.m, p.k, form.kind),
                                              size(p.k, p.n, form.weightKind),
                                              size(p.m, p.n, form.resultKind)));
}

bool DenseProduct::prepare(cuda::Stream stream) {
  if (!workspace)
    return false;
  for (const auto &set : sets)
    if (!set->x || !set->w || !set->y)
      return false;
  const DenseForm &form = *p.form;
  // What is missing is said before anything is filled.
  return library->prepare(stream, workspace.get()) &&
         fill(&Operands::x, form.kind, size(p.m, p.k, form.kind), 1) &&
         fill(&Operands::w, form.weightKind, size(p.k, p.n, form.weightKind),
              2);
}

bool DenseProduct::multiply(bool weightTransposed, int set) {
  const auto &[x, w, y] = *sets[static_cast<size_t>(set)];
  return library->multiply(weightTransposed, {x.get(), w.get(), y.get()});
}

size_t DenseProduct::size(int rows, int columns, int32_t kind) const {
  return static_cast<size_t>(p.batch) * static_cast<size_t>(rows) *
         static_cast<size_t>(columns) * static_cast<size_t>(nmsKindBytes(kind));
}

bool DenseProduct::fill(OwnedBuffer Operands::*operand, int32_t kind,
                        size_t bytes, uint64_t stream) {
  // One block is made and repeated: enough random bits for an honest power
  // draw, without spending minutes on the CPU.
  size_t block = std::min(bytes, size_t(8) << 20);
  std::vector<char> host(block);
  if (nmsRandomNormal(kind, host.data(),
                      static_cast<int64_t>(block) / nmsKindBytes(kind), 1,
                      stream))
    return false;
  for (const auto &set : sets)
    for (size_t done = 0; done < bytes; done += block)
      if (!cu.check(cu->memcpyHtoD(((*set).*operand).device() + done,
                                   host.data(), std::min(block, bytes - done)),
                    "copying random operands to the device"))
        return false;
  return true;
}
