/*===- call.h - a function of a program, as Python calls it -----*- C -*-===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#ifndef NM_SPARSE_PYTHON_CALL_H
#define NM_SPARSE_PYTHON_CALL_H

#include "tensors.h"

enum { MOST_RESULTS = 16 };

typedef int (*CallFunction)(NmsProgram *, int32_t, const NmsArray *, int32_t,
                            NmsAllocate, void *, void *);
typedef void (*SetDeviceFunction)(int32_t);

/* A function of a program, as it is called. */
typedef struct {
  NmsProgram *program;
  int32_t function;
  CallFunction run;
  SetDeviceFunction setDevice;
  PyObject *allocate; /* (device, stream, bytes): a tensor, the workspace */
  PyObject *fail;     /* (status): raises what a status stands for */

  /* Slots hold what Python passes: an array, or the components of a weight. */
  Py_ssize_t slotCount;
  int32_t slotSizes[MOST_ARGUMENTS]; /* 0: an array, else components */
  int32_t slotNumbers[MOST_ARGUMENTS][NMS_MAX_RANK];
  Py_ssize_t resultCount;
  int32_t results[MOST_RESULTS]; /* slots that are written to */

  /* The kernels take `count` arguments of these types. */
  int32_t count;
  ElementType types[MOST_ARGUMENTS];
} Call;

/* The call that a capsule of `prepare` holds. NULL with an exception. */
const Call *findCall(PyObject *capsule);

/* Reads what Python passes for a slot into its arguments. 0 where it is
 * something else, maybe with an exception. */
int readSlot(const Call *call, Py_ssize_t slot, PyObject *given, Arrays *all);

/* Puts the kernels on a stream of `device`. The status of the runtime;
 * NMS_CALL_WITHOUT_MEMORY with an exception. */
int runCall(const Call *call, int64_t device, const NmsArray *arrays,
            void *stream);

/* bound.c, rounded.c and watch.c offer these to Python. */
PyObject *bindCall(PyObject *module, PyObject *arguments);
PyObject *launchBound(PyObject *module, PyObject *const *arguments,
                      Py_ssize_t count);
PyObject *makeRounder(PyObject *module, PyObject *arguments);
PyObject *launchRounded(PyObject *module, PyObject *const *arguments,
                        Py_ssize_t count);
PyObject *watchPlaces(PyObject *module, PyObject *arguments);
PyObject *comparePlaces(PyObject *module, PyObject *const *arguments,
                        Py_ssize_t count);

/* Make the names that these need. 0 with an exception. */
int prepareBound(void);
int prepareWatch(void);

#endif
