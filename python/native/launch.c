/*===- launch.c - calls of programs from Python ----------------------------===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Between a call in Python and nmsProgramLaunch, for tensors of PyTorch: in place
 * of ctypes, which is slow (docs/decisions/069-launching-from-python.md). It
 * knows no library at link time: direct.py gives it the addresses of functions.
 * What it does not expect it leaves to function.py, which says what is wrong.
 *
 *===----------------------------------------------------------------------===*/

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "nm_sparse/Runtime/Program.h"

#include <string.h>

enum { MOST_ARGUMENTS = 64 };

typedef int64_t (*WorkspaceFunction)(NmsProgram *, int32_t, const NmsArray *,
                                     int32_t);
typedef int (*LaunchFunction)(NmsProgram *, int32_t, const NmsArray *, int32_t,
                              void *, void *);

/* A function of a program, and the type of each argument. */
typedef struct {
  NmsProgram *program;
  int32_t function;
  WorkspaceFunction workspace;
  LaunchFunction launch;
  Py_ssize_t count;
  PyObject *dtypes[MOST_ARGUMENTS];
} Call;

static const char *kCall = "nm_sparse.call";

/* Names, made once. */
static PyObject *nameDataPtr, *nameShape, *nameStride, *nameDtype, *nameDevice;

static void freeCall(Call *call) {
  for (Py_ssize_t i = 0; i < call->count; ++i)
    Py_XDECREF(call->dtypes[i]);
  PyMem_Free(call);
}

static void destroyCall(PyObject *capsule) {
  Call *call = PyCapsule_GetPointer(capsule, kCall);
  if (call)
    freeCall(call);
}

/* prepare(program, function, workspace, launch, dtypes): addresses as integers,
 * and the dtype that each argument must be, as a tuple. */
static PyObject *prepare(PyObject *module, PyObject *arguments) {
  unsigned long long program, workspace, launch;
  int function;
  PyObject *dtypes;
  if (!PyArg_ParseTuple(arguments, "KiKKO", &program, &function, &workspace,
                        &launch, &dtypes))
    return NULL;
  Py_ssize_t count = PyTuple_Size(dtypes);
  if (count < 0)
    return NULL;
  if (count > MOST_ARGUMENTS) {
    PyErr_Format(PyExc_ValueError, "a function of %zd arguments, at most %d",
                 count, MOST_ARGUMENTS);
    return NULL;
  }
  Call *call = PyMem_Calloc(1, sizeof(Call));
  if (!call)
    return PyErr_NoMemory();
  call->program = (NmsProgram *)(uintptr_t)program;
  call->function = function;
  call->workspace = (WorkspaceFunction)(uintptr_t)workspace;
  call->launch = (LaunchFunction)(uintptr_t)launch;
  call->count = count;
  for (Py_ssize_t i = 0; i < count; ++i) {
    call->dtypes[i] = PyTuple_GetItem(dtypes, i);
    Py_INCREF(call->dtypes[i]);
  }
  PyObject *capsule = PyCapsule_New(call, kCall, destroyCall);
  if (!capsule)
    freeCall(call);
  return capsule;
}

/* Reads a tuple of integers. Its length, or -1. */
static Py_ssize_t readSizes(PyObject *tuple, int64_t *sizes) {
  Py_ssize_t rank = PyTuple_Size(tuple);
  if (rank < 0 || rank > NMS_MAX_RANK) {
    PyErr_Clear();
    return -1;
  }
  for (Py_ssize_t i = 0; i < rank; ++i) {
    sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    if (sizes[i] == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return -1;
    }
  }
  return rank;
}

/* What `tensor` answers as an integer to `method`, in `value`. 0 where it does
 * not answer so. */
static int askInteger(PyObject *tensor, PyObject *method, int64_t *value) {
  PyObject *answer = PyObject_CallMethodObjArgs(tensor, method, NULL);
  if (!answer)
    return 0;
  /* Addresses may have their highest bit. */
  *value = (int64_t)PyLong_AsUnsignedLongLongMask(answer);
  Py_DECREF(answer);
  return !PyErr_Occurred();
}

/* The same of `sizes`, a new reference to a tuple or NULL, which it takes. */
static Py_ssize_t takeSizes(PyObject *tuple, int64_t *sizes) {
  Py_ssize_t rank = tuple ? readSizes(tuple, sizes) : -1;
  Py_XDECREF(tuple);
  return rank;
}

/* Fills `array` from a tensor of type `dtype` on `device`. 0 where it is
 * something else, maybe with an exception. */
static int readTensor(PyObject *tensor, PyObject *dtype, int64_t device,
                      NmsArray *array, int64_t *sizes, int64_t *strides) {
  PyObject *own = PyObject_GetAttr(tensor, nameDtype);
  Py_XDECREF(own);
  int64_t at = 0, address = 0;
  if (own != dtype || !askInteger(tensor, nameDevice, &at) || at != device ||
      !askInteger(tensor, nameDataPtr, &address) || address % 16 != 0)
    return 0;
  Py_ssize_t rank = takeSizes(PyObject_GetAttr(tensor, nameShape), sizes);
  if (rank < 0)
    return 0;
  array->data = (void *)(uintptr_t)address;
  array->rank = (int32_t)rank;
  array->sizes = sizes;
  array->strides = strides;
  return takeSizes(PyObject_CallMethodObjArgs(tensor, nameStride, NULL),
                   strides) == rank;
}

/* launch(call, device, stream, allocate, argument...): 0 once the kernels are
 * on the stream, 1 where the runtime refused, -1 where it refused the sizes or
 * the strides, and None where an argument is not what is expected.
 * `allocate(bytes)` gives a tensor that is the workspace. */
static PyObject *launch(PyObject *module, PyObject *const *arguments,
                        Py_ssize_t count) {
  Call *call = count < 4 ? NULL : PyCapsule_GetPointer(arguments[0], kCall);
  if (!call) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "launch takes at least 4 arguments");
    return NULL;
  }
  if (count - 4 != call->count)
    Py_RETURN_NONE;
  long device = PyLong_AsLong(arguments[1]);
  void *stream = PyLong_AsVoidPtr(arguments[2]);
  if (PyErr_Occurred())
    return NULL;
  NmsArray arrays[MOST_ARGUMENTS];
  int64_t sizes[MOST_ARGUMENTS][NMS_MAX_RANK];
  int64_t strides[MOST_ARGUMENTS][NMS_MAX_RANK];
  for (Py_ssize_t i = 0; i < call->count; ++i)
    if (!readTensor(arguments[4 + i], call->dtypes[i], device, &arrays[i],
                    sizes[i], strides[i])) {
      PyErr_Clear();
      Py_RETURN_NONE;
    }
  int32_t number = (int32_t)call->count;
  int64_t bytes;
  /* It waits while another thread, which may need Python, loads the kernels. */
  Py_BEGIN_ALLOW_THREADS;
  bytes = call->workspace(call->program, call->function, arrays, number);
  Py_END_ALLOW_THREADS;
  if (bytes < 0)
    return PyLong_FromLong(-1);
  PyObject *workspace = NULL;
  void *memory = NULL;
  if (bytes > 0) {
    workspace = PyObject_CallFunction(arguments[3], "L", (long long)bytes);
    PyObject *pointer =
        workspace ? PyObject_CallMethodObjArgs(workspace, nameDataPtr, NULL)
                  : NULL;
    memory = pointer ? PyLong_AsVoidPtr(pointer) : NULL;
    Py_XDECREF(pointer);
    if (!memory) {
      Py_XDECREF(workspace);
      return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
  }
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = call->launch(call->program, call->function, arrays, number, memory,
                        stream);
  Py_END_ALLOW_THREADS;
  /* Memory that is given back now is used again behind the kernels, on the same
   * stream, by the allocator that it is from. */
  Py_XDECREF(workspace);
  return PyLong_FromLong(status);
}

static PyMethodDef methods[] = {
    {"prepare", prepare, METH_VARARGS, NULL},
    {"launch", (PyCFunction)(void (*)(void))launch, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "_launch",
                                        NULL,
                                        -1,
                                        methods,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__launch(void) {
  nameDataPtr = PyUnicode_InternFromString("data_ptr");
  nameShape = PyUnicode_InternFromString("shape");
  nameStride = PyUnicode_InternFromString("stride");
  nameDtype = PyUnicode_InternFromString("dtype");
  nameDevice = PyUnicode_InternFromString("get_device");
  if (!nameDataPtr || !nameShape || !nameStride || !nameDtype || !nameDevice)
    return NULL;
  return PyModule_Create(&definition);
}
