//===- CFunction.h - a function of a manifest in C --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_HOSTS_C_CFUNCTION_H
#define NM_SPARSE_LIB_HOSTS_C_CFUNCTION_H

#include "nm_sparse/Manifest/Manifest.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <set>

namespace mlir::nm_sparse {

/// The parameters of the C functions for a manifest's function and for those
/// that it selects: a stream, pointers to the arguments, pointers to memory for
/// results that lie in no argument, and the sizes that are not known yet.
class CSignature {
public:
  /// `selected` are the functions that `function` calls; itself where it calls
  /// none.
  CSignature(const nms::ManifestFunction &function,
             llvm::ArrayRef<const nms::ManifestFunction *> selected);

  /// `CUstream stream, const void *x, ..., int64_t tokens`
  std::string writeParameters() const;
  /// The same names in a call.
  std::string writeNames() const;
  /// What the bytes of a workspace depend on: numbers that are sizes of
  /// buffers, and sizes of arguments; `void` where there are none.
  std::string writeSizeParameters() const;
  std::string writeSizeNames() const;
  /// A line of comment for each parameter: what it is, with its shape.
  std::string describe() const;
  /// What may not be passed: conditions joined by `||`, sizes first.
  std::string writeChecks() const;
  std::string writeSizeChecks() const;

  const std::string &getArgument(unsigned number) const {
    return arguments[number];
  }
  std::string getResult(unsigned number) const;
  /// The name of a size of an argument, or its number.
  std::string writeSize(unsigned argument, int64_t dim) const;

private:
  void takeBodyNames(llvm::ArrayRef<const nms::ManifestFunction *> selected);
  void nameArguments();
  void nameSizes(llvm::ArrayRef<const nms::ManifestFunction *> selected);
  std::string makeUnique(const std::string &name);

  const nms::ManifestFunction &function;
  const nms::ManifestFunction &first; ///< The first one that is selected.
  std::vector<std::string> arguments;
  std::vector<bool> isWritten;   ///< For each argument.
  std::vector<bool> isSizeValue; ///< Whether a size of a buffer depends on it.
  std::map<std::pair<unsigned, int64_t>, std::string> sizes;
  std::set<std::string> taken;
};

/// Returns true if result `number` of `function` is in memory that the caller
/// gives for it, without a copy: all of a buffer that no result before it has.
bool isOwnBuffer(const nms::ManifestFunction &function, unsigned number);

/// Returns true if `name` can be the name of a function or a parameter in C and
/// in C++: it is no word of theirs, of CUDA, or of the file's own.
bool isCName(llvm::StringRef name);

/// Returns true if `name` is of letters, digits and `_`.
bool hasCLetters(llvm::StringRef name);

/// The type in C of a number of `type`; empty where C has none.
llvm::StringRef getNumberType(llvm::StringRef type);

/// `expression` over the arguments of `function`, in C.
std::string writeCExpression(const nms::ManifestFunction &function,
                             const CSignature &signature,
                             const nms::Expression &expression);

/// The number of each kernel.
using KernelNumbers = std::map<std::string, unsigned>;

/// Returns true if `function` has buffers that are in no memory of results.
bool hasWorkspace(const nms::ManifestFunction &function);

/// Writes the body of the C function that adds up the bytes of these buffers.
void writeCBytes(llvm::raw_ostream &os, const nms::ManifestFunction &function,
                 const CSignature &signature);

/// Writes the body of the C function that launches what `function` lists, with
/// these buffers from `workspace` on.
void writeCBody(llvm::raw_ostream &os, const nms::ManifestFunction &function,
                const CSignature &signature, const KernelNumbers &kernels);

/// The names of the functions that come with that of `function`.
std::string getWorkspaceName(const nms::ManifestFunction &function);
std::string getWithWorkspaceName(const nms::ManifestFunction &function);

/// The functions that `function` selects from by the number of tokens; itself
/// where it does not. In the order of its cases.
std::vector<const nms::ManifestFunction *>
getSelected(const nms::Manifest &manifest,
            const nms::ManifestFunction &function);

/// Writes the C functions of `function`: those that a header declares, and
/// static ones that they share.
void writeCFunctions(llvm::raw_ostream &os, const nms::Manifest &manifest,
                     const nms::ManifestFunction &function,
                     const KernelNumbers &kernels);

/// Writes what the header says of them.
void writeCDeclarations(llvm::raw_ostream &os, const nms::Manifest &manifest,
                        const nms::ManifestFunction &function);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_HOSTS_C_CFUNCTION_H
