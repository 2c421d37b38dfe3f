/*===- rounded.c - calls that round their input first ----------------------===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Layers of 8 bits round each token to elements with a scale, by a kernel of
 * triton, and multiply these. Both kernels are launched by one call here, and
 * what is between them is one piece of memory.
 *
 *===----------------------------------------------------------------------===*/

#include "bound.h"

#include <string.h>

enum { MOST_VALUES = 32, BYTES_OF_SCALE = 4 };

typedef int (*LaunchFunction)(void *, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, unsigned, void *, void **,
                              void **);
typedef int (*DeviceFunction)(int *);

/* A number of a kernel, as it reads it. */
typedef union {
  void *address;
  int32_t i32;
  int64_t i64;
  float f32;
} Value;

/* A kernel that rounds rows. */
typedef struct {
  LaunchFunction launch; /* cuLaunchKernel */
  DeviceFunction device; /* cuCtxGetDevice */
  void *function;
  unsigned threads, sharedBytes;
  int64_t columns;
  PyObject *kept; /* what the function belongs to */
  Py_ssize_t count;
  Value values[MOST_VALUES];
  int32_t x, out, scales; /* their numbers; -1: it is no value */
} Rounder;

static const char *kRounder = "nm_sparse.rounder";

static void destroyRounder(PyObject *capsule) {
  Rounder *rounder = PyCapsule_GetPointer(capsule, kRounder);
  if (rounder) {
    Py_XDECREF(rounder->kept);
    PyMem_Free(rounder);
  }
}

/* Reads (kind, value). 0 where it is something else, maybe with an exception. */
static int readValue(Rounder *rounder, PyObject *given, int32_t number) {
  const char *kind;
  PyObject *given_value;
  Value *value = &rounder->values[number];
  if (!PyTuple_Check(given) ||
      !PyArg_ParseTuple(given, "sO", &kind, &given_value))
    return 0;
  if (strcmp(kind, "x") == 0)
    rounder->x = number;
  else if (strcmp(kind, "out") == 0)
    rounder->out = number;
  else if (strcmp(kind, "scales") == 0)
    rounder->scales = number;
  else if (strcmp(kind, "address") == 0)
    value->address = PyLong_AsVoidPtr(given_value);
  else if (strcmp(kind, "i32") == 0)
    value->i32 = (int32_t)PyLong_AsLong(given_value);
  else if (strcmp(kind, "i64") == 0)
    value->i64 = PyLong_AsLongLong(given_value);
  else if (strcmp(kind, "fp32") == 0)
    value->f32 = (float)PyFloat_AsDouble(given_value);
  else
    return 0;
  return !PyErr_Occurred();
}

/* rounder((launch, device), function, threads, shared, columns, values, kept):
 * a kernel that rounds rows, for `launch_rounded`: a capsule.
 *
 * launch, device:  addresses of cuLaunchKernel and cuCtxGetDevice.
 * function:   the kernel, a CUfunction, whose grid has a block for each row.
 * threads, shared:  of a block; bytes of dynamic shared memory.
 * columns:    of a row.
 * values:     its arguments, a tuple of (kind, value): "address", "i32", "i64"
 *             or "fp32" and a number, or what each call gives: "x", "out" and
 *             "scales", and None.
 * kept:       what the function belongs to. */
PyObject *makeRounder(PyObject *module, PyObject *arguments) {
  unsigned long long launch, device, function;
  Rounder read = {0};
  PyObject *values, *kept;
  long long columns;
  if (!PyArg_ParseTuple(arguments, "(KK)KIILO!O", &launch, &device, &function,
                        &read.threads, &read.sharedBytes, &columns,
                        &PyTuple_Type, &values, &kept))
    return NULL;
  read.launch = (LaunchFunction)(uintptr_t)launch;
  read.device = (DeviceFunction)(uintptr_t)device;
  read.function = (void *)(uintptr_t)function;
  read.columns = columns;
  read.x = read.out = read.scales = -1;
  read.count = PyTuple_Size(values);
  int isRead = read.count <= MOST_VALUES && columns > 0;
  for (Py_ssize_t i = 0; isRead && i < read.count; ++i)
    isRead = readValue(&read, PyTuple_GetItem(values, i), (int32_t)i);
  if (!isRead || read.x < 0 || read.out < 0) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "values are no arguments of a kernel "
                                        "that rounds rows");
    return NULL;
  }
  Rounder *made = PyMem_Malloc(sizeof(Rounder));
  if (!made)
    return PyErr_NoMemory();
  *made = read;
  Py_INCREF(kept);
  made->kept = kept;
  PyObject *capsule = PyCapsule_New(made, kRounder, destroyRounder);
  if (!capsule) {
    Py_DECREF(kept);
    PyMem_Free(made);
  }
  return capsule;
}

/* How many rows a tensor has, one behind the other. 0 where they are not, or
 * are not of that many columns. */
static int64_t countRows(const DLTensor *view, int64_t columns) {
  int64_t count = 1;
  for (int32_t i = view->ndim - 1; i >= 0; --i) {
    if (view->shape[i] != 1 && view->strides[i] != count)
      return 0;
    count *= view->shape[i];
  }
  int isOfRows = view->ndim > 0 && view->shape[view->ndim - 1] == columns;
  return isOfRows ? count / columns : 0;
}

/* Puts an operand at an address, as if a tensor had been read. */
static void placeOperand(const Bound *bound, int32_t operand, void *data,
                         int64_t rows, int64_t columns, Arrays *all) {
  int32_t number = bound->call->slotNumbers[bound->operands[operand]][0];
  NmsArray *array = &all->arrays[number];
  array->data = data;
  array->rank = columns > 0 ? 2 : 1;
  array->sizes = all->sizes[number];
  array->strides = all->strides[number];
  all->sizes[number][0] = rows;
  all->sizes[number][1] = columns;
  all->strides[number][0] = columns > 0 ? columns : 1;
  all->strides[number][1] = 1;
}

/* Launches the kernel. 0 where the driver does not take it. */
static int roundRows(const Rounder *rounder, int64_t device, void *stream,
                     int64_t rows, void *x, void *out, void *scales) {
  int current = -1;
  if (rounder->device(&current) != 0 || current != device)
    return 0;
  Value values[MOST_VALUES];
  void *addresses[MOST_VALUES];
  memcpy(values, rounder->values, rounder->count * sizeof(Value));
  values[rounder->x].address = x;
  values[rounder->out].address = out;
  if (rounder->scales >= 0)
    values[rounder->scales].address = scales;
  for (Py_ssize_t i = 0; i < rounder->count; ++i)
    addresses[i] = &values[i];
  return rounder->launch(rounder->function, (unsigned)rows, 1, 1,
                         rounder->threads, 1, 1, rounder->sharedBytes, stream,
                         addresses, NULL) == 0;
}

/* Rounds x into new memory, `scratch`, as the operands of the call. 0 where that
 * cannot be, maybe with an exception. */
static int readRounded(const Bound *bound, const Rounder *rounder, PyObject *x,
                       Arrays *all, PyObject **scratch) {
  DLTensor view = {0}, memory;
  int64_t columns = rounder->columns;
  int64_t rows = viewTensor(x, &view) ? countRows(&view, columns) : 0;
  char *data = (char *)view.data + view.byte_offset;
  int hasScales = rounder->scales >= 0;
  if (rows == 0 || rows > INT32_MAX || (uintptr_t)data % 16 != 0 ||
      view.device.device_type != kDLCUDA ||
      view.device.device_id != bound->fixed.device ||
      bound->operandCount != 1 + hasScales)
    return 0;
  /* Scales begin at a multiple of 16 bytes, as arrays do. */
  int64_t bytes = (rows * columns + 15) / 16 * 16;
  int64_t total = bytes + (hasScales ? rows * BYTES_OF_SCALE : 0);
  int64_t size = (view.dtype.bits + 7) / 8;
  int64_t count = (total + size - 1) / size;
  *scratch = newLike(x, &count, 1);
  if (!*scratch || !viewTensor(*scratch, &memory))
    return 0;
  char *out = (char *)memory.data + memory.byte_offset;
  if ((uintptr_t)out % 16 != 0)
    return 0;
  placeOperand(bound, 0, out, rows, columns, all);
  if (hasScales)
    placeOperand(bound, 1, out + bytes, rows, 0, all);
  return roundRows(rounder, all->device, bound->stream, rows, data, out,
                   out + bytes);
}

/* launch_rounded(bound, rounder, x): the results of `launch_bound` for x, which
 * is rounded to the operands. None where that does not take x, or the driver not
 * the kernel. */
PyObject *launchRounded(PyObject *module, PyObject *const *arguments,
                        Py_ssize_t count) {
  const Bound *bound = count == 3 ? findBound(arguments[0]) : NULL;
  const Rounder *rounder =
      bound ? PyCapsule_GetPointer(arguments[1], kRounder) : NULL;
  if (!rounder) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "launch_rounded takes 3 arguments");
    return NULL;
  }
  PyObject *x = arguments[2], *scratch = NULL;
  Arrays all;
  beginArrays(bound, &all);
  DLTensor view;
  PyObject *results = NULL;
  if (viewTensor(x, &view) && view.ndim > 0)
    results = makeResults(bound, x, &view, &all); /* also checks its type */
  if (results && !readRounded(bound, rounder, x, &all, &scratch)) {
    Py_DECREF(results);
    results = NULL;
  }
  PyObject *found = finishCall(bound, &all, results);
  Py_XDECREF(scratch); /* whose memory is used again behind the kernels */
  return found;
}
