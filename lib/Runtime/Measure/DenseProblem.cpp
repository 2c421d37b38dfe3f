//===- DenseProblem.cpp - Dense products that can be timed ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DenseProblem.h"
#include "../Vendor/CublasApi.h"
#include "nm_sparse/Runtime/Recorder.h"

#include <climits>
#include <initializer_list>

using namespace nms;

namespace {

constexpr bool isLt = true, bothLayouts = true;

// Results of 16 bits and more are of the kind of the activations. Those of 8
// bits are what layers have: bf16, or sums of integers, which are scaled by
// what comes next. Products of 8 bits exist for one layout of operands, whose
// rows are whole pieces of 16 bytes (cublasLtMatmul, "To use FP8 kernels"), or
// of 4 for integers ("To use IMMA kernels"). There is none of e5m2 by e5m2: its
// neighbour, which tensor cores multiply as fast, has weights of e4m3.
constexpr DenseForm forms[] = {
    {NMS_F32, NMS_F32, NMS_F32, !isLt, cublas::compute32F, 1, bothLayouts},
    {NMS_F16, NMS_F16, NMS_F16, !isLt, cublas::compute32F, 1, bothLayouts},
    {NMS_BF16, NMS_BF16, NMS_BF16, !isLt, cublas::compute32F, 1, bothLayouts},
    {NMS_F8E4M3FN, NMS_F8E4M3FN, NMS_BF16, isLt, cublas::compute32F, 16,
     !bothLayouts},
    {NMS_F8E5M2, NMS_F8E4M3FN, NMS_BF16, isLt, cublas::compute32F, 16,
     !bothLayouts},
    {NMS_I8, NMS_I8, NMS_I32, !isLt, cublas::compute32I, 4, !bothLayouts},
};

const char *getLibrary(const DenseForm &form) {
  return form.isLt ? "cuBLASLt" : "cuBLAS";
}

} // namespace

const DenseForm *nms::findDenseForm(int32_t kind) {
  for (const DenseForm &form : forms)
    if (form.kind == kind)
      return &form;
  fail("cuBLAS comparison: element kind %s (%d) is not timed: use f32, f16, "
       "bf16, f8E4M3FN, f8E5M2 or i8",
       nmsKindName(kind), kind);
  return nullptr;
}

bool nms::makeDenseProblem(int32_t kind, int64_t m, int64_t n, int64_t k,
                           int64_t batch, DenseProblem &problem) {
  for (int64_t size : {m, n, k, batch})
    if (size < 1 || size > INT_MAX)
      return !fail("cuBLAS comparison: m=%lld n=%lld k=%lld batch=%lld: each "
                   "must be 1 to 2147483647",
                   static_cast<long long>(m), static_cast<long long>(n),
                   static_cast<long long>(k), static_cast<long long>(batch));
  const DenseForm *form = findDenseForm(kind);
  if (!form)
    return false;
  if (n % form->multiple != 0 || k % form->multiple != 0)
    return !fail("cuBLAS comparison: n=%lld k=%lld of %s: kernels of %s need "
                 "multiples of %d for both",
                 static_cast<long long>(n), static_cast<long long>(k),
                 nmsKindName(kind), getLibrary(*form), form->multiple);
  problem.form = form;
  problem.m = static_cast<int>(m);
  problem.n = static_cast<int>(n);
  problem.k = static_cast<int>(k);
  problem.batch = static_cast<int>(batch);
  return true;
}

int nms::getCublasType(int32_t kind) {
  switch (kind) {
  case NMS_F16:
    return cublas::dataF16;
  case NMS_BF16:
    return cublas::dataBF16;
  case NMS_I8:
    return cublas::dataI8;
  case NMS_I32:
    return cublas::dataI32;
  case NMS_F8E4M3FN:
    return cublas::dataE4M3;
  case NMS_F8E5M2:
    return cublas::dataE5M2;
  default:
    return cublas::dataF32;
  }
}

extern "C" int nmsDenseInfo(int32_t kind, NmsDenseInfo *result) {
  if (!result)
    return fail("nmsDenseInfo: the result pointer is null: pass a struct");
  const DenseForm *form = findDenseForm(kind);
  if (!form)
    return 1;
  *result = {getLibrary(*form), form->kind, form->weightKind, form->resultKind};
  return 0;
}
