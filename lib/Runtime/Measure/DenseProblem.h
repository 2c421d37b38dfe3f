//===- DenseProblem.h - Dense products that can be timed --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_RUNTIME_MEASURE_DENSEPROBLEM_H
#define NM_SPARSE_LIB_RUNTIME_MEASURE_DENSEPROBLEM_H

#include "nm_sparse/Base/Kind.h"

#include <cstddef>

namespace nms {

/// How products of activations of one kind are made.
struct DenseForm {
  int32_t kind; // the activations
  int32_t weightKind, resultKind;
  bool isLt;             // by cuBLASLt
  int compute;           // cuBLAS compute type
  int multiple;          // legal k and n are multiples of it
  bool readsBothLayouts; // else the weight is stored n x k
};

/// `batch` products of m x k and k x n matrices.
struct DenseProblem {
  const DenseForm *form;
  int m, n, k, batch;
};

/// The form of `kind`; null with the reason recorded when it is not timed.
const DenseForm *findDenseForm(int32_t kind);

/// False with the reason recorded when no library is timed on such a problem.
bool makeDenseProblem(int32_t kind, int64_t m, int64_t n, int64_t k,
                      int64_t batch, DenseProblem &problem);

/// The number by which cuBLAS knows an element kind of a form.
int getCublasType(int32_t kind);

} // namespace nms

#endif // NM_SPARSE_LIB_RUNTIME_MEASURE_DENSEPROBLEM_H
