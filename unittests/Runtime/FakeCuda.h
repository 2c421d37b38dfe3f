//===- FakeCuda.h - What the fake driver tells tests ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_UNITTESTS_RUNTIME_FAKECUDA_H
#define NM_SPARSE_UNITTESTS_RUNTIME_FAKECUDA_H

#include <cstdint>

struct FakeState {
  int captureMode = 0;   // of the calling thread
  int streamCapture = 0; // what streams say of themselves
  int moduleLoads = 0;
  int loadedInMode = -1; // of captures, the last module
  int moduleUnloads = 0;
  int launches = 0; // outside of graphs
  int graphLaunches = 0;
  int frees = 0;
  int syncs = 0;
  int copiesWithoutStream = 0; // to the device
  int contextDepth = 0;
  int maxDynamicShared = 0;
  int memsets = 0;
  int tensorMaps = 0;
  unsigned grid[3] = {0, 0, 0};
  unsigned cluster[3] = {0, 0, 0};
  bool kernelsWait = false; // what modules say of themselves
  bool overlaps = false;    // the last launch
  uint64_t firstParam = 0;
  uint64_t sumOfFirstParams = 0;
  uint64_t boxInner = 0, boxOuter = 0, strideBytes = 0;
  int failNextLaunch = 0; // a CUresult

  // The last product of cuBLAS or cuBLASLt, as that library counts types: the
  // weight, the activations and the result, and which ones are transposed.
  int productTypes[3] = {-1, -1, -1};
  int computeType = 0;
  bool transposed[2] = {false, false};
  int batch = 0;
  // Those of cuBLASLt alone.
  bool hasScales = false, hasFastSums = false;
  int liveLtObjects = 0;
};

extern "C" FakeState *fakeState();

/// Within the fake driver: the device works so long.
void spendFakeTime(double us);

#endif // NM_SPARSE_UNITTESTS_RUNTIME_FAKECUDA_H
