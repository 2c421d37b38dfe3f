/*===- tensors.c - tensors of Python as programs take them ----------------===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * torch offers C functions that describe its tensors from version 2.10. Tensors
 * of subclasses, and all of older versions, are asked by their methods, which
 * makes Python objects of all numbers.
 *
 *===----------------------------------------------------------------------===*/

#include "tensors.h"

#include <string.h>

/* Names, made once. */
static PyObject *nameDataPtr, *nameShape, *nameStride, *nameDtype, *nameDevice;

static const DLPackExchangeAPI *exchange;
static PyObject *tensorType, *parameterType;

int prepareTensors(void) {
  nameDataPtr = PyUnicode_InternFromString("data_ptr");
  nameShape = PyUnicode_InternFromString("shape");
  nameStride = PyUnicode_InternFromString("stride");
  nameDtype = PyUnicode_InternFromString("dtype");
  nameDevice = PyUnicode_InternFromString("get_device");
  return nameDataPtr && nameShape && nameStride && nameDtype && nameDevice;
}

PyObject *useExchange(PyObject *module, PyObject *arguments) {
  PyObject *capsule, *tensor, *parameter;
  if (!PyArg_ParseTuple(arguments, "OOO", &capsule, &tensor, &parameter))
    return NULL;
  if (capsule == Py_None) {
    exchange = NULL;
    Py_RETURN_FALSE;
  }
  const DLPackExchangeAPI *api =
      PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  if (!api)
    return NULL;
  if (api->header.version.major != DLPACK_MAJOR_VERSION ||
      !api->dltensor_from_py_object_no_sync)
    Py_RETURN_FALSE;
  Py_INCREF(tensor);
  Py_INCREF(parameter);
  tensorType = tensor;
  parameterType = parameter;
  exchange = api;
  Py_RETURN_TRUE;
}

int findCurrentStream(int64_t device, void **stream) {
  return exchange && exchange->current_work_stream &&
         exchange->current_work_stream(kDLCUDA, (int32_t)device, stream) == 0;
}

static int isExchanged(PyObject *tensor) {
  PyObject *type = (PyObject *)Py_TYPE(tensor);
  return exchange && (type == tensorType || type == parameterType);
}

int viewTensor(PyObject *tensor, DLTensor *view) {
  if (!isExchanged(tensor))
    return 0;
  if (exchange->dltensor_from_py_object_no_sync(tensor, view) == 0)
    return view->ndim <= NMS_MAX_RANK && (view->ndim == 0 || view->strides);
  PyErr_Clear();
  return 0;
}

Py_ssize_t readSizes(PyObject *tuple, int64_t *sizes) {
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

int readType(PyObject *sample, ElementType *type) {
  type->dtype = PyObject_GetAttr(sample, nameDtype);
  if (!type->dtype)
    return 0;
  DLTensor view = {0};
  if (isExchanged(sample) &&
      exchange->dltensor_from_py_object_no_sync(sample, &view))
    PyErr_Clear();
  type->type = view.dtype;
  return 1;
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

int readAddress(PyObject *tensor, void **address) {
  int64_t value = 0;
  if (!askInteger(tensor, nameDataPtr, &value))
    return 0;
  *address = (void *)(uintptr_t)value;
  return 1;
}

/* Fills argument `number` by what the tensor answers to Python. 0 where it is
 * not of the right type, maybe with an exception. */
static int askTensor(PyObject *tensor, const ElementType *type, int32_t number,
                     Arrays *all, int64_t *device) {
  PyObject *own = PyObject_GetAttr(tensor, nameDtype);
  Py_XDECREF(own);
  int64_t address = 0;
  if (own != type->dtype || !askInteger(tensor, nameDevice, device) ||
      !askInteger(tensor, nameDataPtr, &address))
    return 0;
  NmsArray *array = &all->arrays[number];
  Py_ssize_t rank =
      takeSizes(PyObject_GetAttr(tensor, nameShape), all->sizes[number]);
  if (rank < 0)
    return 0;
  array->data = (void *)(uintptr_t)address;
  array->rank = (int32_t)rank;
  array->sizes = all->sizes[number];
  array->strides = all->strides[number];
  return takeSizes(PyObject_CallMethodObjArgs(tensor, nameStride, NULL),
                   all->strides[number]) == rank;
}

/* The same by DLPack. Sizes and strides are copied: another thread may change
 * those of the tensor while the kernels are launched. */
static int exchangeTensor(PyObject *tensor, const ElementType *type,
                          int32_t number, Arrays *all, int64_t *device) {
  DLTensor view;
  if (exchange->dltensor_from_py_object_no_sync(tensor, &view))
    return 0;
  if (view.dtype.code != type->type.code ||
      view.dtype.bits != type->type.bits || view.dtype.lanes != 1 ||
      view.ndim > NMS_MAX_RANK || (view.ndim > 0 && !view.strides))
    return 0;
  NmsArray *array = &all->arrays[number];
  array->data = (char *)view.data + view.byte_offset;
  array->rank = view.ndim;
  array->sizes = all->sizes[number];
  array->strides = all->strides[number];
  if (view.ndim > 0) {
    memcpy(all->sizes[number], view.shape, view.ndim * sizeof(int64_t));
    memcpy(all->strides[number], view.strides, view.ndim * sizeof(int64_t));
  }
  *device = view.device.device_type == kDLCUDA ? view.device.device_id : -1;
  return 1;
}

int readTensor(PyObject *tensor, const ElementType *type, int32_t number,
               Arrays *all) {
  int64_t device = -1;
  int isRead = isExchanged(tensor)
                   ? exchangeTensor(tensor, type, number, all, &device)
                   : askTensor(tensor, type, number, all, &device);
  if (!isRead || device < 0 || (uintptr_t)all->arrays[number].data % 16 != 0 ||
      (all->device >= 0 && device != all->device))
    return 0;
  all->device = device;
  return 1;
}
