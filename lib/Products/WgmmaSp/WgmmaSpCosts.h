//===- WgmmaSpCosts.h - constants of the cost of wgmma_sp -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fitted to 3458 kernels of 246 layers, most of them drawn at random, on an
// H200 (bench/results/h200-sparse.json, runs 4 to 13 and 15 to 17): to their
// times, and to how much longer than the fastest of a layer the one takes that
// is chosen. docs/decisions/055 says how device memory is modelled.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_WGMMASP_WGMMASPCOSTS_H
#define NM_SPARSE_LIB_PRODUCTS_WGMMASP_WGMMASPCOSTS_H

namespace mlir::nm_sparse {

/// The costs that differ between activations that the tensor memory accelerator
/// copies and those that threads gather.
struct FormCosts {
  /// Clocks of an SM for a product of 64 outputs and 32 rows, and for each of
  /// its tokens, while copies are written to the shared memory that it reads;
  /// and where metadata is ready before.
  double productClocks = 0, tokenClocks = 0, aheadTokenClocks = 0;
  /// Clocks of it for each line of 128 bytes that threads copy.
  double lineClocks = 0;
  /// By how much three warpgroups multiply more slowly than two or four.
  double threeWarpgroups = 1;
  /// Clocks of a warpgroup for a K step beside its products: to wait for the
  /// copies and make the metadata, ahead or not; for each product to begin; and
  /// whether its own products add to that, while nothing else is to do.
  double stepClocks = 0, aheadStepClocks = 0, beginClocks = 0, ownProducts = 0;
  /// The part by which a second CTA of an SM makes the steps of one longer, and
  /// the seconds by which it begins later.
  double crowding = 0, laterCta = 0;
  /// Seconds from a copy to its use, which the stages of a ring share but those
  /// that are being read; for each row of feature-major or gathered
  /// activations; of each wave of CTAs after the first; and of a byte of a
  /// result.
  double flight = 0, slotsInUse = 0, row = 0, wave = 0, resultByte = 0;
  /// True if all CTAs of an SM write theirs at the same time.
  bool resultsTogether = false;
  /// K steps that a CTA takes to fill its ring.
  double fillSteps = 0;
  /// Shares of the rate of L2 that are reached for activations and for weights:
  /// many CTAs of a wave read the same ones.
  double l2Share = 0, weightL2Share = 0;
  /// Bytes a second of rows of token-major activations that tiles have beyond
  /// the last token: the accelerator fills them with zeros more slowly than it
  /// copies others.
  double outsideBytes = 1e18;
  /// The higher these are, the better the longest part of a step, and of the
  /// whole, hides the others.
  double stepNorm = 0, norm = 0;
  /// Seconds of a launch; of adding parts up, for each part, and of a byte of
  /// one.
  double launch = 0, parts = 0, part = 0, partByte = 0;
  /// The part of the time of tiles by which those that CTAs share along the
  /// contraction take longer.
  double sharedPart = 0;
  /// The share of the rate of device memory that is reached, and by how much
  /// it takes longer for a weight of which CTAs read several parts at a time.
  double memoryShare = 0, partsMemory = 1;
  /// Bytes a second that the SMs of a port read from device memory, and bytes
  /// of the ring of an SM in flight with which ports would get equal shares.
  double portBytes = 0, equalShares = 1;
  /// The part by which device memory takes longer for each of these bytes.
  double queuedByte = 0;
};

inline constexpr FormCosts kBulk = [] {
  FormCosts c;
  c.productClocks = 11.3, c.tokenClocks = 0.482, c.aheadTokenClocks = 0.464;
  c.threeWarpgroups = 1.13;
  c.stepClocks = 227, c.aheadStepClocks = 197, c.beginClocks = 26.1;
  c.ownProducts = 1, c.crowding = 0.101, c.laterCta = 0.0424e-6;
  c.flight = 0.519e-6, c.slotsInUse = 1, c.row = 0.36e-9, c.wave = 3.8e-6;
  c.resultByte = 14.2e-12, c.resultsTogether = true;
  c.fillSteps = 1.96;
  c.l2Share = 7.11, c.weightL2Share = 2.4, c.outsideBytes = 1.68e12;
  c.stepNorm = 1.96, c.norm = 5.34;
  c.launch = 1.44e-6, c.parts = 1.34e-6, c.part = 0.122e-6;
  c.partByte = 29.4e-12, c.sharedPart = 0.467;
  c.memoryShare = 0.955, c.partsMemory = 1.17;
  c.portBytes = 69.9e9, c.equalShares = 380e3, c.queuedByte = 0.506e-6;
  return c;
}();
// Fitted to 122 kernels of 25 layers, 6 of them drawn at random
// (bench/results/h200-vnm.json, runs 7 to 9), and sharedPart to the same. None
// of them waits for device memory.
inline constexpr FormCosts kGathered = [] {
  FormCosts c;
  c.productClocks = 5, c.tokenClocks = 0.685, c.aheadTokenClocks = 0.7;
  c.lineClocks = 0.72, c.threeWarpgroups = 1.07;
  c.stepClocks = 800, c.aheadStepClocks = 867, c.beginClocks = 5;
  c.flight = 2.2e-6, c.row = 1.14e-9, c.wave = 2.28e-6;
  c.resultByte = 26.9e-12;
  c.l2Share = 1.34, c.weightL2Share = 4.55, c.stepNorm = 6.9, c.norm = 3.16;
  c.launch = 2.37e-6, c.parts = 1.47e-6, c.partByte = 29.1e-12;
  c.sharedPart = 0.6, c.memoryShare = 0.897, c.partsMemory = 1.11;
  c.portBytes = 4e12;
  return c;
}();

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_WGMMASP_WGMMASPCOSTS_H
