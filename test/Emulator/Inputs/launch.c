//===- launch.c - a program that knows CUDA alone -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// launch IMAGE KERNEL CTAS: runs the kernel of the image on a pointer to eight
// floats, 0 to 7, and the number 3, and prints what the floats are then.
//
//===----------------------------------------------------------------------===//

#if __has_include(<cuda.h>)
#include <cuda.h>
#else
#include "cuda-types.h"
#endif
#include <stdio.h>
#include <stdlib.h>

static void check(CUresult result, const char *what) {
  const char *name = "", *text = "";
  if (result == CUDA_SUCCESS)
    return;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  fprintf(stderr, "launch: %s: %s: %s\n", what, name, text);
  exit(1);
}

static char *readFile(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    exit(2);
  fseek(file, 0, SEEK_END);
  size_t bytes = ftell(file);
  rewind(file);
  char *text = malloc(bytes + 1);
  bytes = fread(text, 1, bytes, file);
  text[bytes] = '\0';
  fclose(file);
  return text;
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr buffer;
  float numbers[8];
  for (int i = 0; i < 8; ++i)
    numbers[i] = (float)i;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuModuleLoadData(&module, readFile(argv[1])), "cuModuleLoadData");
  check(cuModuleGetFunction(&function, module, argv[2]), "cuModuleGetFunction");
  check(cuMemAlloc(&buffer, sizeof(numbers)), "cuMemAlloc");
  check(cuMemcpyHtoD(buffer, numbers, sizeof(numbers)), "cuMemcpyHtoD");
  int number = 3;
  void *arguments[] = {&buffer, &number};
  check(cuLaunchKernel(function, atoi(argv[3]), 1, 1, 4, 1, 1, 0, NULL,
                       arguments, NULL),
        "cuLaunchKernel");
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  check(cuMemcpyDtoH(numbers, buffer, sizeof(numbers)), "cuMemcpyDtoH");
  for (int i = 0; i < 8; ++i)
    printf("%g ", numbers[i]);
  printf("\n");
  check(cuMemFree(buffer), "cuMemFree");
  check(cuModuleUnload(module), "cuModuleUnload");
  return 0;
}
