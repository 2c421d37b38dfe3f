/* Calls what emit-c.mlir compiles to, well and badly, from several threads. */

#include "two_layers.h"

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
