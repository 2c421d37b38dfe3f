//===- CostTable.cpp - fitted constants of the cost model -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostTable.h"

using namespace mlir;
using namespace mlir::nm_sparse;

// Fitted by bench/fit_model.py to layers drawn at random, on an NVIDIA H200
// (bench/results/h200-random-fit.json to -fit-4). What tiles take that CTAs
// share: bench/results/h200-stream.json, and a memset.
static constexpr SharedCosts h200 = {
    /*launch*/ 1.45e-6,
    /*split*/ 2.26e-6,
    /*stream*/ 17.5e-6,
    /*apart*/ 1.26,
    /*overlap*/ 0.381e-6,
    /*init*/ 2.42,
    /*apply*/ 0.996,
    /*scattered*/ 0.32e-9,
    /*transposition*/ 2.9e-6,
    /*rowCopy*/ 4.79e-6};

// Exchanges: 20 % of the life of CTAs with tiles of 256 x 128 and 128 x 128, by
// ncu (docs/decisions/105). Clusters: cuOccupancyMaxActiveClusters, for CTAs
// with 200 KB of shared memory (bench/results/h200-tuned-clusters.json).
static constexpr ClusterCosts h200Clusters = {
    /*meet*/ 1.2e-6,
    /*element*/ 0.1e-9,
    /*running*/ {66, 39, 30, 22, 17, 15, 15},
    /*multiprocessors*/ 132};

// One chip has been measured; the seconds of the others are taken to be alike,
// and their rates are in the table of chips.
const SharedCosts &nm_sparse::getSharedCosts(const Chip &) { return h200; }

const ClusterCosts &nm_sparse::getClusterCosts(const Chip &) {
  return h200Clusters;
}
