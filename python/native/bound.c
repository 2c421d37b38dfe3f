/*===- bound.c - calls whose weights stay the same -------------------------===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A layer is called again and again with the same weights: they are read once.
 * What is left of a call is to allocate the results and to launch, which takes
 * fewer objects of Python here (docs/decisions/093-eager-calls-in-c.md).
 *
 *===----------------------------------------------------------------------===*/

#include "bound.h"

#include <string.h>

static const char *kBound = "nm_sparse.bound";
static PyObject *nameNewEmpty, *nameContiguous;

const Bound *findBound(PyObject *capsule) {
  return PyCapsule_GetPointer(capsule, kBound);
}

int prepareBound(void) {
  nameNewEmpty = PyUnicode_InternFromString("new_empty");
  nameContiguous = PyUnicode_InternFromString("contiguous");
  return nameNewEmpty && nameContiguous;
}

static void freeBound(Bound *bound) {
  Py_XDECREF(bound->capsule);
  Py_XDECREF(bound->kept);
  PyMem_Free(bound);
}

static void destroyBound(PyObject *capsule) {
  Bound *bound = PyCapsule_GetPointer(capsule, kBound);
  if (bound)
    freeBound(bound);
}

static int isResult(const Call *call, Py_ssize_t slot) {
  for (Py_ssize_t i = 0; i < call->resultCount; ++i)
    if (call->results[i] == slot)
      return 1;
  return 0;
}

/* Reads what is the same each time. 0 where that cannot be. */
static int readFixed(Bound *bound, PyObject *arguments) {
  const Call *call = bound->call;
  bound->fixed.device = -1;
  for (Py_ssize_t i = 0; i < call->slotCount; ++i) {
    PyObject *given = PyTuple_GetItem(arguments, i);
    if (given != Py_None) {
      if (isResult(call, i) || !readSlot(call, i, given, &bound->fixed))
        return 0;
    } else if (call->slotSizes[i]) {
      return 0;
    } else if (!isResult(call, i)) {
      if (bound->operandCount == MOST_OPERANDS)
        return 0;
      bound->operands[bound->operandCount++] = (int32_t)i;
    }
  }
  return bound->operandCount > 0 && bound->fixed.device >= 0;
}

/* bind(call, stream, arguments, outputs): what `launch_bound` needs, a capsule;
 * None where it cannot call so.
 *
 * call:       of `prepare`.
 * stream:     an address.
 * arguments:  a tuple of those of `launch`; None for results, and for what each
 *             call gives.
 * outputs:    the last size of each result. */
PyObject *bindCall(PyObject *module, PyObject *arguments) {
  PyObject *capsule, *kept, *outputs;
  unsigned long long stream;
  if (!PyArg_ParseTuple(arguments, "OKO!O!", &capsule, &stream, &PyTuple_Type,
                        &kept, &PyTuple_Type, &outputs))
    return NULL;
  const Call *call = findCall(capsule);
  Bound *bound = call ? PyMem_Calloc(1, sizeof(Bound)) : NULL;
  if (!bound)
    return call ? PyErr_NoMemory() : NULL;
  Py_INCREF(capsule);
  Py_INCREF(kept);
  bound->capsule = capsule;
  bound->kept = kept;
  bound->call = call;
  bound->stream = (void *)(uintptr_t)stream;
  if (PyTuple_Size(kept) == call->slotCount &&
      PyTuple_Size(outputs) == call->resultCount &&
      call->resultCount <= NMS_MAX_RANK &&
      readSizes(outputs, bound->outputs) == call->resultCount &&
      readFixed(bound, kept)) {
    PyObject *made = PyCapsule_New(bound, kBound, destroyBound);
    if (!made)
      freeBound(bound);
    return made;
  }
  freeBound(bound);
  PyErr_Clear();
  Py_RETURN_NONE;
}

/* Reads argument `number`. 0, without an exception, where it is something
 * else. */
static int readArray(const Call *call, PyObject *tensor, int32_t number,
                     Arrays *all) {
  if (readTensor(tensor, &call->types[number], number, all))
    return 1;
  PyErr_Clear();
  return 0;
}

int flatten(Arrays *all, int32_t number) {
  NmsArray *array = &all->arrays[number];
  int64_t *sizes = all->sizes[number], *strides = all->strides[number];
  int64_t count = 1;
  for (int32_t i = array->rank - 1; i >= 0; --i) {
    if (sizes[i] != 1 && strides[i] != count)
      return 0;
    count *= sizes[i];
  }
  if (array->rank < 1 || count == 0)
    return 0;
  int64_t last = sizes[array->rank - 1];
  array->rank = 2;
  sizes[0] = count / last;
  sizes[1] = strides[0] = last;
  strides[1] = 1;
  return 1;
}

PyObject *newLike(PyObject *like, const int64_t *sizes, int32_t rank) {
  PyObject *tuple = PyTuple_New(rank);
  PyObject *method = tuple ? PyObject_GetAttr(like, nameNewEmpty) : NULL;
  for (int32_t i = 0; method && i < rank; ++i)
    PyTuple_SetItem(tuple, i, PyLong_FromLongLong(sizes[i]));
  PyObject *made = method ? PyObject_Call(method, tuple, NULL) : NULL;
  Py_XDECREF(method);
  Py_XDECREF(tuple);
  return made;
}

PyObject *makeResults(const Bound *bound, PyObject *like, const DLTensor *view,
                      Arrays *all) {
  const Call *call = bound->call;
  int64_t sizes[NMS_MAX_RANK];
  memcpy(sizes, view->shape, view->ndim * sizeof(int64_t));
  PyObject *results = PyList_New(call->resultCount);
  for (Py_ssize_t i = 0; results && i < call->resultCount; ++i) {
    int32_t number = call->slotNumbers[call->results[i]][0];
    sizes[view->ndim - 1] = bound->outputs[i];
    PyObject *one = newLike(like, sizes, view->ndim);
    if (one)
      PyList_SetItem(results, i, one); /* takes it */
    if (one && readArray(call, one, number, all) && flatten(all, number))
      continue;
    Py_DECREF(results);
    return NULL;
  }
  return results;
}

void beginArrays(const Bound *bound, Arrays *all) {
  memcpy(all->arrays, bound->fixed.arrays,
         bound->call->count * sizeof(NmsArray));
  all->device = bound->fixed.device;
}

PyObject *finishCall(const Bound *bound, const Arrays *all, PyObject *results) {
  int status = NMS_CALL_REFUSED;
  if (results)
    status = runCall(bound->call, all->device, all->arrays, bound->stream);
  if (results && status == 0)
    return results;
  Py_XDECREF(results);
  if (PyErr_Occurred())
    return NULL;
  if (status != NMS_CALL_REFUSED)
    return PyObject_CallFunction(bound->call->fail, "i", status);
  Py_RETURN_NONE;
}

PyObject *contiguous(PyObject *tensor) {
  return PyObject_CallMethodObjArgs(tensor, nameContiguous, NULL);
}

/* Reads the rows of `like`, and those of a copy of it where they are not one
 * behind the other: `copy`, a new reference then. */
static int readRows(const Bound *bound, PyObject *like, Arrays *all,
                    PyObject **copy) {
  const Call *call = bound->call;
  int32_t number = call->slotNumbers[bound->operands[0]][0];
  if (!readArray(call, like, number, all))
    return 0;
  if (flatten(all, number))
    return 1;
  *copy = contiguous(like);
  return *copy && readArray(call, *copy, number, all) && flatten(all, number);
}

/* Reads the operands of one call: `like` itself as rows, or those behind it. */
static int readOperands(const Bound *bound, PyObject *const *arguments,
                        Py_ssize_t count, Arrays *all, PyObject **copy) {
  if (count == 1)
    return bound->operandCount == 1 && readRows(bound, arguments[0], all, copy);
  if (count - 1 != bound->operandCount)
    return 0;
  const Call *call = bound->call;
  for (int32_t i = 0; i < bound->operandCount; ++i) {
    int32_t number = call->slotNumbers[bound->operands[i]][0];
    if (!readArray(call, arguments[i + 1], number, all))
      return 0;
  }
  return 1;
}

/* launch_bound(bound, like, operand...): a list of results [..., N], like
 * `like` [..., K], once the kernels are on the stream. Without operands its rows
 * are the one that the kernels read. None, with nothing launched, where an
 * argument is not what the program takes, and for empty ones. Raises what
 * `new_empty` raises, and `fail`. */
PyObject *launchBound(PyObject *module, PyObject *const *arguments,
                      Py_ssize_t count) {
  const Bound *bound = count < 2 ? NULL : findBound(arguments[0]);
  if (!bound) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError,
                      "launch_bound takes at least 2 arguments");
    return NULL;
  }
  Arrays all;
  beginArrays(bound, &all);
  DLTensor view;
  PyObject *copy = NULL, *results = NULL;
  if (viewTensor(arguments[1], &view) && view.ndim > 0 &&
      readOperands(bound, arguments + 1, count - 1, &all, &copy))
    results = makeResults(bound, arguments[1], &view, &all);
  PyObject *found = finishCall(bound, &all, results);
  Py_XDECREF(copy);
  return found;
}
