/*===- bound.h - calls whose weights stay the same --------------*- C -*-===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#ifndef NM_SPARSE_PYTHON_BOUND_H
#define NM_SPARSE_PYTHON_BOUND_H

#include "call.h"

enum { MOST_OPERANDS = 4 };

/* A call and what is the same each time. */
typedef struct {
  PyObject *capsule; /* of the call */
  PyObject *kept;    /* the arguments below */
  const Call *call;
  void *stream;
  int32_t operandCount, operands[MOST_OPERANDS]; /* slots of the others */
  int64_t outputs[MOST_RESULTS];                 /* last size of each result */
  Arrays fixed;
} Bound;

/* That of a capsule of `bind`. NULL with an exception. */
const Bound *findBound(PyObject *capsule);

/* Makes rows [tokens, K] of argument `number`, [..., K]. 0 where it has no
 * element, or where they are not one behind the other. */
int flatten(Arrays *all, int32_t number);

/* A new tensor of the type and device of `like`. NULL with an exception. */
PyObject *newLike(PyObject *like, const int64_t *sizes, int32_t rank);

/* `tensor`, or a copy whose elements are one behind the other. */
PyObject *contiguous(PyObject *tensor);

/* The arguments of a call so far. */
void beginArrays(const Bound *bound, Arrays *all);

/* The results for `like`, [..., K], as rows among the arguments: a list. NULL
 * where they are not what the kernels write; with an exception where there is
 * no memory. */
PyObject *makeResults(const Bound *bound, PyObject *like, const DLTensor *view,
                      Arrays *all);

/* Launches, and returns `results`, which it takes. None where they are NULL
 * without an exception, and where the program does not take the arguments. */
PyObject *finishCall(const Bound *bound, const Arrays *all, PyObject *results);

#endif
