/*===- tensors.h - tensors of Python as programs take them ------*- C -*-===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#ifndef NM_SPARSE_PYTHON_TENSORS_H
#define NM_SPARSE_PYTHON_TENSORS_H

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dlpack.h"
#include "nm_sparse/Runtime/Program.h"

enum { MOST_ARGUMENTS = 64 };

/* The element type that an argument must have, as torch and DLPack say it. */
typedef struct {
  PyObject *dtype;
  DLDataType type; /* of 0 bits where DLPack has none */
} ElementType;

/* The arguments of one call, with their sizes. */
typedef struct {
  NmsArray arrays[MOST_ARGUMENTS];
  int64_t sizes[MOST_ARGUMENTS][NMS_MAX_RANK];
  int64_t strides[MOST_ARGUMENTS][NMS_MAX_RANK];
  int64_t device; /* of those so far; -1 before the first */
} Arrays;

/* Makes what the functions below need. 0 with an exception. */
int prepareTensors(void);

/* use_exchange(capsule, Tensor, Parameter): from now on reads tensors of these
 * types by the C functions of the capsule, and not by their methods. False
 * where these are of another version of DLPack, or where it is None: by their
 * methods again. */
PyObject *useExchange(PyObject *module, PyObject *arguments);

/* The stream that torch launches on now. 0 where it does not say. */
int findCurrentStream(int64_t device, void **stream);

/* Reads a tuple of at most NMS_MAX_RANK integers. Its length, or -1. */
Py_ssize_t readSizes(PyObject *tuple, int64_t *sizes);

/* The type of a tensor. 0 with an exception. */
int readType(PyObject *sample, ElementType *type);

/* Where the elements of a tensor are, an address. 0 with an exception. */
int readAddress(PyObject *tensor, void **address);

/* Describes a tensor that is read by DLPack, whose memory and sizes it borrows.
 * 0 where it is none. */
int viewTensor(PyObject *tensor, DLTensor *view);

/* Fills argument `number` from a tensor of this type. 0 where it is something
 * else, on another device than those before it or on none, or begins where
 * kernels cannot read; maybe with an exception. */
int readTensor(PyObject *tensor, const ElementType *type, int32_t number,
               Arrays *all);

#endif
