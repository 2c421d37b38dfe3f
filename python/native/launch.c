/*===- launch.c - calls of programs from Python ----------------------------===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Between a call in Python and nmsProgramLaunch, for tensors of PyTorch: in
 * place of ctypes, which is slow (docs/decisions/069-launching-from-python.md).
 * It knows no library at link time: direct.py gives it the addresses of
 * functions. What it does not expect it leaves to function.py, which says what
 * is wrong.
 *
 *===----------------------------------------------------------------------===*/

#include "call.h"

static const char *kCall = "nm_sparse.call";
static PyObject *nameArrays;

static void freeCall(Call *call) {
  for (int32_t i = 0; i < call->count; ++i)
    Py_XDECREF(call->types[i].dtype);
  Py_XDECREF(call->allocate);
  Py_XDECREF(call->fail);
  PyMem_Free(call);
}

static void destroyCall(PyObject *capsule) {
  Call *call = PyCapsule_GetPointer(capsule, kCall);
  if (call)
    freeCall(call);
}

/* The slots of a call: a tuple of the numbers of each. */
static int readSlots(Call *call, PyObject *slots) {
  call->slotCount = PyTuple_Size(slots);
  if (call->slotCount < 0 || call->slotCount > MOST_ARGUMENTS)
    return 0;
  for (Py_ssize_t i = 0; i < call->slotCount; ++i) {
    PyObject *slot = PyTuple_GetItem(slots, i);
    int isArray = PyLong_Check(slot);
    int64_t numbers[NMS_MAX_RANK] = {isArray ? PyLong_AsLongLong(slot) : 0};
    Py_ssize_t size = isArray ? 1 : readSizes(slot, numbers);
    if (size <= 0)
      return 0;
    call->slotSizes[i] = isArray ? 0 : (int32_t)size;
    for (Py_ssize_t j = 0; j < size; ++j) {
      if (numbers[j] < 0 || numbers[j] >= call->count)
        return 0;
      call->slotNumbers[i][j] = (int32_t)numbers[j];
    }
  }
  return 1;
}

static int readResults(Call *call, PyObject *results) {
  call->resultCount = PyTuple_Size(results);
  if (call->resultCount <= 0 || call->resultCount > MOST_RESULTS)
    return 0;
  for (Py_ssize_t i = 0; i < call->resultCount; ++i) {
    long slot = PyLong_AsLong(PyTuple_GetItem(results, i));
    if (slot < 0 || slot >= call->slotCount)
      return 0;
    call->results[i] = (int32_t)slot;
  }
  return 1;
}

/* The types of arguments, by an empty tensor of each. */
static int readTypes(Call *call, PyObject *samples) {
  Py_ssize_t count = PyTuple_Size(samples);
  if (count < 0 || count > MOST_ARGUMENTS)
    return 0;
  for (; call->count < count; ++call->count)
    if (!readType(PyTuple_GetItem(samples, call->count),
                  &call->types[call->count]))
      return 0;
  return 1;
}

/* prepare(program, function, (call, setDevice), samples, slots, results,
 *         allocate, fail): what `launch` needs, a capsule.
 *
 * program and functions:  addresses.
 * samples:    an empty tensor of the type of each argument of the kernels.
 * slots:      for each argument of Python the number that the kernels have for
 *             it, or a tuple with those of the components of a weight.
 * results:    the arguments of Python that results are written to. */
static PyObject *prepare(PyObject *module, PyObject *arguments) {
  unsigned long long program, run, setDevice;
  int function;
  PyObject *samples, *slots, *results, *allocate, *fail;
  if (!PyArg_ParseTuple(arguments, "Ki(KK)O!O!O!OO", &program, &function, &run,
                        &setDevice, &PyTuple_Type, &samples, &PyTuple_Type,
                        &slots, &PyTuple_Type, &results, &allocate, &fail))
    return NULL;
  Call *call = PyMem_Calloc(1, sizeof(Call));
  if (!call)
    return PyErr_NoMemory();
  call->program = (NmsProgram *)(uintptr_t)program;
  call->function = function;
  call->run = (CallFunction)(uintptr_t)run;
  call->setDevice = (SetDeviceFunction)(uintptr_t)setDevice;
  Py_INCREF(allocate);
  Py_INCREF(fail);
  call->allocate = allocate;
  call->fail = fail;
  if (!readTypes(call, samples) || !readSlots(call, slots) ||
      !readResults(call, results)) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_ValueError,
                   "legal are functions of at most %d arguments and %d results "
                   "that are written to arguments",
                   MOST_ARGUMENTS, MOST_RESULTS);
    freeCall(call);
    return NULL;
  }
  PyObject *capsule = PyCapsule_New(call, kCall, destroyCall);
  if (!capsule)
    freeCall(call);
  return capsule;
}

const Call *findCall(PyObject *capsule) {
  return PyCapsule_GetPointer(capsule, kCall);
}

static int readArgument(const Call *call, PyObject *tensor, int32_t number,
                        Arrays *all) {
  return readTensor(tensor, &call->types[number], number, all);
}

/* The components of a weight: of a tuple, or of an object that has one. */
static int readWeight(const Call *call, PyObject *weight, Py_ssize_t slot,
                      Arrays *all) {
  int isTuple = PyTuple_Check(weight);
  PyObject *parts = isTuple ? weight : PyObject_GetAttr(weight, nameArrays);
  int isRead = parts && PyTuple_Check(parts) &&
               PyTuple_Size(parts) == call->slotSizes[slot];
  for (int32_t i = 0; isRead && i < call->slotSizes[slot]; ++i)
    isRead = readArgument(call, PyTuple_GetItem(parts, i),
                          call->slotNumbers[slot][i], all);
  if (!isTuple)
    Py_XDECREF(parts);
  return isRead;
}

int readSlot(const Call *call, Py_ssize_t slot, PyObject *given, Arrays *all) {
  return call->slotSizes[slot]
             ? readWeight(call, given, slot, all)
             : readArgument(call, given, call->slotNumbers[slot][0], all);
}

static int readArguments(const Call *call, PyObject *const *arguments,
                         Arrays *all) {
  all->device = -1;
  for (Py_ssize_t i = 0; i < call->slotCount; ++i)
    if (!readSlot(call, i, arguments[i], all))
      return 0;
  return all->device >= 0;
}

/* The stream of a call: `given`, or where that is None the current one of
 * torch. 0 with an exception, or where torch does not say. */
static int findStream(PyObject *given, int64_t device, void **stream) {
  if (given != Py_None) {
    *stream = PyLong_AsVoidPtr(given);
    return !PyErr_Occurred();
  }
  return findCurrentStream(device, stream);
}

/* What one call needs of Python while it is let go. */
typedef struct {
  const Call *call;
  int64_t device;
  void *stream;
  PyObject *workspace; /* a tensor, once there is one */
  PyThreadState *thread;
} Running;

/* An NmsAllocate: null with an exception. */
static void *allocateWorkspace(void *context, int64_t bytes) {
  Running *running = context;
  PyEval_RestoreThread(running->thread);
  void *memory = NULL;
  running->workspace = PyObject_CallFunction(
      running->call->allocate, "LKL", (long long)running->device,
      (unsigned long long)(uintptr_t)running->stream, (long long)bytes);
  if (running->workspace && readAddress(running->workspace, &memory) && !memory)
    PyErr_NoMemory();
  running->thread = PyEval_SaveThread();
  return memory;
}

static PyObject *giveResults(const Call *call, PyObject *const *arguments) {
  if (call->resultCount == 1) {
    Py_INCREF(arguments[call->results[0]]);
    return arguments[call->results[0]];
  }
  PyObject *results = PyTuple_New(call->resultCount);
  for (Py_ssize_t i = 0; results && i < call->resultCount; ++i) {
    Py_INCREF(arguments[call->results[i]]);
    PyTuple_SetItem(results, i, arguments[call->results[i]]);
  }
  return results;
}

int runCall(const Call *call, int64_t device, const NmsArray *arrays,
            void *stream) {
  Running running = {call, device, stream, NULL, NULL};
  /* It waits while another thread, which may need Python, loads the kernels. */
  running.thread = PyEval_SaveThread();
  call->setDevice((int32_t)device);
  int status = call->run(call->program, call->function, arrays, call->count,
                         allocateWorkspace, &running, stream);
  PyEval_RestoreThread(running.thread);
  /* Memory that is given back now is used again behind the kernels, on the same
   * stream, by the allocator that it is from. */
  Py_XDECREF(running.workspace);
  return status;
}

/* launch(call, stream, argument...): the results, once the kernels are on the
 * stream (an address; None: the current one of torch); None, with nothing
 * launched, where an argument is not what is expected. Raises what `fail`
 * raises. */
static PyObject *launch(PyObject *module, PyObject *const *arguments,
                        Py_ssize_t count) {
  const Call *call = count < 2 ? NULL : findCall(arguments[0]);
  if (!call) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "launch takes at least 2 arguments");
    return NULL;
  }
  if (count - 2 != call->slotCount)
    Py_RETURN_NONE;
  Arrays all;
  void *stream = NULL;
  if (!readArguments(call, arguments + 2, &all) ||
      !findStream(arguments[1], all.device, &stream)) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  int status = runCall(call, all.device, all.arrays, stream);
  if (status == NMS_CALL_WITHOUT_MEMORY)
    return NULL;
  if (status)
    return PyObject_CallFunction(call->fail, "i", status);
  return giveResults(call, arguments + 2);
}

static PyMethodDef methods[] = {
    {"prepare", prepare, METH_VARARGS, NULL},
    {"use_exchange", useExchange, METH_VARARGS, NULL},
    {"launch", (PyCFunction)(void (*)(void))launch, METH_FASTCALL, NULL},
    {"bind", bindCall, METH_VARARGS, NULL},
    {"launch_bound", (PyCFunction)(void (*)(void))launchBound, METH_FASTCALL,
     NULL},
    {"rounder", makeRounder, METH_VARARGS, NULL},
    {"launch_rounded", (PyCFunction)(void (*)(void))launchRounded,
     METH_FASTCALL, NULL},
    {"watch", watchPlaces, METH_VARARGS, NULL},
    {"unchanged", (PyCFunction)(void (*)(void))comparePlaces, METH_FASTCALL,
     NULL},
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
  nameArrays = PyUnicode_InternFromString("arrays");
  if (!nameArrays || !prepareTensors() || !prepareBound() || !prepareWatch())
    return NULL;
  return PyModule_Create(&definition);
}
