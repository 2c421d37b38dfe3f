/* Calls what emit-c.mlir compiles to, well and badly, from several threads. */

#define _GNU_SOURCE
#include "two_layers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 128, OUTPUTS = 64, TOKENS = 37 };

#define REQUIRE(call) require(call, 0, #call)
#define REFUSED(call) require(call, CUDA_ERROR_INVALID_VALUE, #call)

static void require(int found, int wanted, const char *what) {
  if (found == wanted)
    return;
  printf("%s gives %d, not %d\n", what, found, wanted);
  exit(1);
}

/* Counts what the functions allocate. */
static int allocations;
CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  CUresult (*next)(CUdeviceptr *, size_t, CUstream);
  *(void **)&next = dlsym(RTLD_NEXT, "cuMemAllocAsync");
  ++allocations;
  return next(pointer, bytes, stream);
}

static CUcontext context;
static CUdeviceptr values, places, x;
static float expected[TOKENS * OUTPUTS];

static void *at(CUdeviceptr address) { return (void *)address; }

static CUdeviceptr upload(const void *data, size_t bytes) {
  CUdeviceptr pointer;
  REQUIRE(cuMemAlloc(&pointer, bytes));
  REQUIRE(cuMemcpyHtoD(pointer, data, bytes));
  return pointer;
}

/* Several calls on a stream of its own. */
static void *run(void *unused) {
  float found[TOKENS * OUTPUTS];
  CUstream stream;
  CUdeviceptr y;
  (void)unused;
  REQUIRE(cuCtxSetCurrent(context));
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE(cuMemAlloc(&y, sizeof(found)));
  for (int tokens = TOKENS; tokens > 0; tokens /= 2) {
    REQUIRE(linear(stream, at(x), at(values), at(places), at(y), tokens));
    REQUIRE(cuStreamSynchronize(stream));
    REQUIRE(cuMemcpyDtoH(found, y, sizeof(float) * tokens * OUTPUTS));
    require(memcmp(found, expected, sizeof(float) * tokens * OUTPUTS), 0,
            "the result of a thread");
  }
  return NULL;
}

/* Two products with an array between them, which is memory of the stream's pool
   or of the caller. */
static void call_with_workspace(CUstream stream, CUdeviceptr y) {
  float found[TOKENS * OUTPUTS];
  /* 64 inputs have half the positions of 128, for the second weight. */
  CUdeviceptr w = values, i = places, memory;
  size_t bytes = two_workspace(TOKENS);
  require(bytes >= TOKENS * OUTPUTS * 2 && bytes % 256 == 0, 1, "bytes");
  require(two_workspace(0), 0, "bytes for no tokens");
  require(two_workspace(-1) == SIZE_MAX, 1, "bytes for -1 tokens");
  require(two_workspace(1ll << 31) == SIZE_MAX, 1, "bytes for 2^31 tokens");
  require(linear_workspace(TOKENS), 0, "bytes of one product");
  require(add_to_workspace(), 0, "bytes of a product that is added");
  REQUIRE(cuMemAlloc(&memory, bytes + 256));
  for (int own = 0; own < 2; ++own) {
    REQUIRE(cuMemsetD8(y, 0x7e, sizeof(found)));
    REQUIRE(cuMemsetD8(memory, 0x7e, bytes));
    allocations = 0;
    if (own)
      REQUIRE(two_with_workspace(stream, at(x), at(w), at(i), at(w), at(i),
                                 at(y), TOKENS, at(memory)));
    else
      REQUIRE(two(stream, at(x), at(w), at(i), at(w), at(i), at(y), TOKENS));
    require(allocations, !own, "allocations");
    REQUIRE(cuStreamSynchronize(stream));
    REQUIRE(cuMemcpyDtoH(found, y, sizeof(found)));
    for (int n = 0; n < TOKENS * OUTPUTS; ++n)
      require((int)found[n], 32 * 16, "a sum of two products");
  }
  /* It begins at a multiple of 256, and is there unless it is empty. */
  REFUSED(two_with_workspace(stream, at(x), at(w), at(i), at(w), at(i), at(y),
                             TOKENS, at(memory + 16)));
  REFUSED(two_with_workspace(stream, at(x), at(w), at(i), at(w), at(i), at(y),
                             TOKENS, NULL));
  REFUSED(two_with_workspace(stream, at(x), at(w), at(i), at(w), at(i), at(y),
                             -1, at(memory)));
  REQUIRE(two_with_workspace(stream, NULL, at(w), at(i), at(w), at(i), NULL, 0,
                             NULL));
  REQUIRE(linear_with_workspace(stream, at(x), at(w), at(i), at(y), 1, NULL));
  require(part_workspace(-1) == SIZE_MAX, 1, "bytes for the first -1 tokens");
  REFUSED(part(stream, at(x), at(w), at(i), at(w), at(i), -1, at(y)));
  /* A call that is refused allocates nothing. */
  allocations = 0;
  REFUSED(two(stream, at(x + 8), at(w), at(i), at(w), at(i), at(y), TOKENS));
  require(allocations, 0, "allocations of a call that is refused");
}

int main(void) {
  static unsigned short ones[INPUTS * TOKENS], weight[32 * OUTPUTS];
  static unsigned char index[32 * 2];
  CUdevice device;
  CUstream stream;
  CUdeviceptr y;
  REQUIRE(cuInit(0));
  REQUIRE(cuDeviceGet(&device, 0));
  REQUIRE(cuDevicePrimaryCtxRetain(&context, device));
  REQUIRE(cuCtxSetCurrent(context));
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < INPUTS * TOKENS; ++i)
    ones[i] = 0x3c00;
  for (int i = 0; i < 32 * OUTPUTS; ++i)
    weight[i] = 0x3c00;
  for (int i = 0; i < 32 * 2; ++i)
    index[i] = (unsigned char)(i / 2 % 8);
  for (int i = 0; i < TOKENS * OUTPUTS; ++i)
    expected[i] = 32;
  x = upload(ones, sizeof(ones));
  values = upload(weight, sizeof(weight));
  places = upload(index, sizeof(index));
  REQUIRE(cuMemAlloc(&y, sizeof(expected)));

  /* No tokens need no memory; whatever is no number of tokens is refused. */
  REQUIRE(two_layers_prepare());
  REQUIRE(linear(stream, NULL, at(values), at(places), NULL, 0));
  REFUSED(linear(stream, at(x), at(values), at(places), at(y), -1));
  REFUSED(linear(stream, at(x), at(values), at(places), at(y), INT64_MIN));
  REFUSED(linear(stream, at(x), at(values), at(places), at(y), 1ll << 31));
  REFUSED(linear(stream, at(x), at(values), at(places), at(y), INT64_MAX));
  REFUSED(linear(stream, at(x + 8), at(values), at(places), at(y), 1));
  REFUSED(linear(stream, at(x), at(values + 2), at(places), at(y), 1));
  REFUSED(linear(stream, at(x), at(values), at(places), at(y + 4), 1));
  /* Null is an address of no array, unless there are no tokens. */
  REFUSED(linear(stream, NULL, at(values), at(places), at(y), 1));
  REFUSED(linear(stream, at(x), NULL, at(places), at(y), 1));
  REFUSED(linear(stream, at(x), at(values), at(places), NULL, 1));

  call_with_workspace(stream, y);

  pthread_t threads[4];
  for (int i = 0; i < 4; ++i)
    REQUIRE(pthread_create(&threads[i], NULL, run, NULL));
  for (int i = 0; i < 4; ++i)
    REQUIRE(pthread_join(threads[i], NULL));

  /* Without a context there is no device to launch on. */
  REQUIRE(cuCtxSetCurrent(NULL));
  if (!linear(NULL, at(x), at(values), at(places), at(y), 1))
    require(0, CUDA_ERROR_INVALID_CONTEXT, "a call without a context");
  puts("all calls are as they should be");
  return 0;
}
