//===- CostTable.cpp - fitted constants of the cost model -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostTable.h"

using namespace mlir;
using namespace mlir::nm_sparse;

// Fitted by bench/fit_model.py to runs of an NVIDIA H200. The dense library:
// bench/results/h200-rivals.json. What tiles take that CTAs share:
// bench/results/h200-stream.json, and a memset.
static constexpr SharedCosts h200 = {
    /*launch*/ 1.3e-6,   /*split*/ 2.8e-6,
    /*stream*/ 10e-6,    /*apart*/ 1.14,
    /*overlap*/ 0.9e-6,
    /*denseLaunch*/ 4e-6};

// One chip has been measured; the seconds of the others are taken to be alike,
// and their rates are in the table of chips.
const SharedCosts &nm_sparse::getSharedCosts(const Chip &) { return h200; }
