/*===- watch.c - whether layers have changed -------------------------------===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A launch is prepared for objects at certain places of layers, and for tensors
 * with a version and a memory. Each call looks whether they are still there.
 *
 *===----------------------------------------------------------------------===*/

#include "call.h"

#include <string.h>

/* An object and where it is to be. */
typedef struct {
  PyObject *owner;     /* NULL: the layer of number `layer` */
  Py_ssize_t layer;
  PyObject *attribute; /* of the owner */
  PyObject *key;       /* Py_None: it is the attribute; else of this dict */
  PyObject *value;
  int64_t version;     /* -1: not asked for */
  int32_t rank;        /* of a tensor; -1: only the object is looked at */
  void *data;
  DLDataType type;
  int64_t sizes[NMS_MAX_RANK], strides[NMS_MAX_RANK];
} Place;

typedef struct {
  Py_ssize_t layers, count;
  Place places[];
} Watch;

static const char *kWatch = "nm_sparse.watch";
static PyObject *nameVersion;

int prepareWatch(void) {
  nameVersion = PyUnicode_InternFromString("_version");
  return nameVersion != NULL;
}

static void freeWatch(Watch *watch) {
  for (Py_ssize_t i = 0; i < watch->count; ++i) {
    Py_XDECREF(watch->places[i].owner);
    Py_XDECREF(watch->places[i].attribute);
    Py_XDECREF(watch->places[i].key);
    Py_XDECREF(watch->places[i].value);
  }
  PyMem_Free(watch);
}

static void destroyWatch(PyObject *capsule) {
  Watch *watch = PyCapsule_GetPointer(capsule, kWatch);
  if (watch)
    freeWatch(watch);
}

/* The version of a tensor, or -1 where it has none. */
static int64_t versionOf(PyObject *tensor) {
  PyObject *answer = PyObject_GetAttr(tensor, nameVersion);
  int64_t version = answer ? PyLong_AsLongLong(answer) : -1;
  Py_XDECREF(answer);
  if (PyErr_Occurred())
    PyErr_Clear();
  return version;
}

/* Notes the memory of a tensor. */
static void noteView(Place *place, const DLTensor *view) {
  place->rank = view->ndim;
  place->data = (char *)view->data + view->byte_offset;
  place->type = view->dtype;
  if (view->ndim > 0) {
    memcpy(place->sizes, view->shape, view->ndim * sizeof(int64_t));
    memcpy(place->strides, view->strides, view->ndim * sizeof(int64_t));
  }
}

/* 1 if a tensor still has that memory. */
static int hasView(const Place *place, const DLTensor *view) {
  size_t bytes = place->rank * sizeof(int64_t);
  return place->rank == view->ndim &&
         place->data == (char *)view->data + view->byte_offset &&
         memcmp(&place->type, &view->dtype, sizeof(DLDataType)) == 0 &&
         (bytes == 0 || (memcmp(place->sizes, view->shape, bytes) == 0 &&
                         memcmp(place->strides, view->strides, bytes) == 0));
}

/* Reads (owner, attribute, key, value). 0 where that cannot be watched, maybe
 * with an exception. */
static int readPlace(PyObject *given, Place *place) {
  PyObject *owner;
  if (!PyTuple_Check(given) ||
      !PyArg_ParseTuple(given, "OOOO", &owner, &place->attribute, &place->key,
                        &place->value))
    return 0;
  Py_INCREF(place->attribute);
  Py_INCREF(place->key);
  Py_INCREF(place->value);
  if (PyLong_Check(owner)) {
    place->layer = PyLong_AsSsize_t(owner);
  } else {
    Py_INCREF(owner);
    place->owner = owner;
  }
  int isAttribute = place->key == Py_None;
  place->version = isAttribute ? versionOf(place->value) : -1;
  DLTensor view;
  place->rank = -1;
  if (viewTensor(place->value, &view))
    noteView(place, &view);
  return !isAttribute || (place->version >= 0 && place->rank >= 0);
}

/* watch(layers, places): what `unchanged` compares, a capsule; None where it
 * cannot, as it reads tensors by DLPack.
 *
 * layers:  how many there are.
 * places:  a tuple of (owner, attribute, key, value): a layer by its number, or
 *          an object; the value is the item `key` of its attribute, a dict. If
 *          the key is None it is the attribute itself, a tensor, whose version
 *          is looked at, too. */
PyObject *watchPlaces(PyObject *module, PyObject *arguments) {
  Py_ssize_t layers;
  PyObject *places;
  if (!PyArg_ParseTuple(arguments, "nO!", &layers, &PyTuple_Type, &places))
    return NULL;
  Py_ssize_t count = PyTuple_Size(places);
  Watch *made = PyMem_Calloc(1, sizeof(Watch) + count * sizeof(Place));
  if (!made)
    return PyErr_NoMemory();
  made->layers = layers;
  while (made->count < count) {
    Place *place = &made->places[made->count];
    int isRead = readPlace(PyTuple_GetItem(places, made->count++), place);
    if (isRead && place->layer >= 0 && place->layer < layers)
      continue;
    freeWatch(made);
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  PyObject *capsule = PyCapsule_New(made, kWatch, destroyWatch);
  if (!capsule)
    freeWatch(made);
  return capsule;
}

/* 1 if `owner` has the object at its place. */
static int isAt(const Place *place, PyObject *owner) {
  PyObject *found = PyObject_GetAttr(owner, place->attribute);
  if (!found)
    return 0;
  PyObject *value = found;
  if (place->key != Py_None)
    value = PyDict_Check(found) ? PyDict_GetItem(found, place->key) : NULL;
  int isSame = value == place->value;
  Py_DECREF(found);
  return isSame;
}

static int isUnchanged(const Place *place, PyObject *layers) {
  PyObject *owner = place->owner;
  if (!owner)
    owner = PySequence_GetItem(layers, place->layer);
  int isSame = owner && isAt(place, owner);
  if (!place->owner)
    Py_XDECREF(owner);
  if (!isSame)
    return 0;
  if (place->version >= 0 && versionOf(place->value) != place->version)
    return 0;
  DLTensor view;
  return place->rank < 0 ||
         (viewTensor(place->value, &view) && hasView(place, &view));
}

/* unchanged(watch, layers): whether all is as `watch` saw it. */
PyObject *comparePlaces(PyObject *module, PyObject *const *arguments,
                        Py_ssize_t count) {
  const Watch *watch =
      count == 2 ? PyCapsule_GetPointer(arguments[0], kWatch) : NULL;
  if (!watch) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "unchanged takes 2 arguments");
    return NULL;
  }
  int isSame = PySequence_Size(arguments[1]) == watch->layers;
  for (Py_ssize_t i = 0; isSame && i < watch->count; ++i)
    isSame = isUnchanged(&watch->places[i], arguments[1]);
  PyErr_Clear();
  return PyBool_FromLong(isSame);
}
