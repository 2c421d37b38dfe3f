/*===- dlpack.h - reading tensors by DLPack ---------------------*- C -*-===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * As much of the binary interface of DLPack 1 as tensors.c uses: a tensor as a
 * C structure, and the functions by which a framework gives them (the capsule
 * `__dlpack_c_exchange_api__` of its type of tensors). Names are those of the
 * standard, https://github.com/dmlc/dlpack.
 *
 *===----------------------------------------------------------------------===*/

#ifndef NM_SPARSE_PYTHON_DLPACK_H
#define NM_SPARSE_PYTHON_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR_VERSION = 1, kDLCUDA = 2 };

typedef struct {
  uint32_t major, minor;
} DLPackVersion;

typedef struct {
  int32_t device_type; /* an enumeration of its own there */
  int32_t device_id;
} DLDevice;

typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides; /* in elements */
  uint64_t byte_offset;     /* from data to the first element */
} DLTensor;

typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader *prev_api;
} DLPackExchangeAPIHeader;

typedef struct {
  DLPackExchangeAPIHeader header;
  void *managed_tensor_allocator;
  void *managed_tensor_from_py_object_no_sync;
  void *managed_tensor_to_py_object_no_sync;
  /* Describes a tensor, whose memory and sizes it borrows. May be null. */
  int (*dltensor_from_py_object_no_sync)(void *object, DLTensor *out);
  /* The stream that the framework launches on now. */
  int (*current_work_stream)(int32_t deviceType, int32_t device, void **out);
} DLPackExchangeAPI;

#endif
