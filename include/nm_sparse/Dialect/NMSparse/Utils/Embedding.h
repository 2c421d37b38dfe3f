//===- Embedding.h - patterns that hold another pattern ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A weight embeds in a pattern when it obeys that one, too, and so can be
// stored as if it had it.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_EMBEDDING_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_EMBEDDING_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// The most rows that one output of a weight of `level`, an n:m one, keeps of
/// any `rows` rows that start at a multiple of `rows`.
int64_t getMostKept(const SparsityLevel &level, int64_t rows);

/// The n:m level of single elements that every output of a weight of
/// `encoding`, of two levels, obeys by itself: what the inner level keeps of a
/// window of the outer one.
SparsityLevel getElementLevel(EncodingAttr encoding);

/// Returns true if every weight of `encoding` embeds in `pattern`, an
/// element-wise n:m pattern.
bool alwaysEmbeds(EncodingAttr encoding, const SparsityLevel &pattern);

/// `encoding` with `pattern` as its only level.
EncodingAttr replaceLevels(EncodingAttr encoding, const SparsityLevel &pattern);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_EMBEDDING_H
