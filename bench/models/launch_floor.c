/*===- launch_floor.c - what the driver takes for a launch ----------------===
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Launches an empty kernel of six parameters many times, so that the GPU waits
 * for the host, and prints the least microseconds of a launch among 20 repeats.
 * Opens the driver at run time: cc launch_floor.c -ldl.
 *
 *===----------------------------------------------------------------------===*/

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *kernel =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c,\n"
    "                      .param .u64 d, .param .u64 e, .param .u64 f)\n"
    "{ ret; }\n";

static void *library;

static void *find(const char *name) {
  void *function = dlsym(library, name);
  if (!function) {
    fprintf(stderr, "launch_floor: the driver has no %s\n", name);
    exit(1);
  }
  return function;
}

static void check(int status, const char *what) {
  if (status) {
    fprintf(stderr, "launch_floor: %s: error %d\n", what, status);
    exit(1);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e6 * time.tv_sec + 1e-3 * time.tv_nsec;
}

int main(void) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "launch_floor: %s\n", dlerror());
    return 1;
  }
  int (*init)(unsigned) = find("cuInit");
  int (*retain)(void **, int) = find("cuDevicePrimaryCtxRetain");
  int (*enter)(void *) = find("cuCtxSetCurrent");
  int (*load)(void **, const void *) = find("cuModuleLoadData");
  int (*get)(void **, void *, const char *) = find("cuModuleGetFunction");
  int (*synchronize)(void) = find("cuCtxSynchronize");
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned,
                unsigned, unsigned, void *, void **, void **) =
      find("cuLaunchKernel");

  void *context, *module, *function;
  check(init(0), "cuInit");
  check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(enter(context), "cuCtxSetCurrent");
  check(load(&module, kernel), "cuModuleLoadData");
  check(get(&function, module, "empty"), "cuModuleGetFunction");

  unsigned long long value = 0;
  void *parameters[6] = {&value, &value, &value, &value, &value, &value};
  double least = 1e9;
  for (int repeat = 0; repeat < 20; ++repeat) {
    enum { COUNT = 500 };
    double begin = now();
    for (int i = 0; i < COUNT; ++i)
      check(launch(function, 32, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL),
            "cuLaunchKernel");
    double each = (now() - begin) / COUNT;
    least = each < least ? each : least;
    check(synchronize(), "cuCtxSynchronize");
  }
  printf("%.3f\n", least);
  return 0;
}
