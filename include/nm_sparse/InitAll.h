//===- InitAll.h - the one registration list --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_INITALL_H
#define NM_SPARSE_INITALL_H

namespace mlir {
class DialectRegistry;
namespace nm_sparse {

/// Registers the nm_sparse dialect and every upstream dialect that its
/// pipelines read or write, with the external models (bufferization, tiling,
/// LLVM translation, NVVM target) that they need.
void registerAllDialects(DialectRegistry &registry);

/// Registers our passes and pipelines, once however often it is called: a
/// dialect plugin and a pass plugin may both ask.
void registerOwnPasses();

/// Registers our passes and pipelines, and the upstream passes that the
/// pipelines consist of, so that a dumped pipeline can be run again.
void registerAllPasses();

/// Registers the transform dialect with our operations and those upstream ones
/// that match and tile products, for tools that run transform scripts.
void registerTransformOps(DialectRegistry &registry);

/// Registers upstream's interpreter of transform scripts, for tools that do not
/// have it.
void registerTransformPasses();

} // namespace nm_sparse
} // namespace mlir

#endif // NM_SPARSE_INITALL_H
