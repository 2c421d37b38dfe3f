//===- ManifestReader.h - from JSON to structures ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_MANIFEST_MANIFESTREADER_H
#define NM_SPARSE_LIB_MANIFEST_MANIFESTREADER_H

#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Base/Fail.h"
#include "nm_sparse/Manifest/Manifest.h"

#include <nlohmann/json.hpp>

namespace nms {

using Json = nlohmann::json;

/// Reads one manifest. Members return false, with the reason recorded, for what
/// is malformed.
class ManifestReader {
public:
  bool read(const Json &json, Manifest &manifest);

private:
  bool readFunction(const Json &json, ManifestFunction &result);
  bool readKernels(const Json &json, Manifest &manifest);
  bool readArguments(const Json &json);
  bool readWeights(const Json &json);
  bool readBuffers(const Json &json);
  bool readLaunches(const Json &json);
  bool readLaunch(const Json &json, ManifestLaunch &launch);
  bool readParameter(const Json &json, ManifestParameter &parameter);
  bool readTensorMap(const Json &json, ManifestParameter &parameter);
  bool readIm2col(const Json &json, ManifestParameter &parameter);
  bool readAccess(const Json &json, ManifestParameter &parameter);
  bool readResults(const Json &json);
  bool readChecks(const Json &json);
  bool readCheck(const Json &json, ManifestCheck &check);
  bool readCases(const Json &json);
  bool linkCases(Manifest &manifest);

  /// The member `key` of `json`; null, with the reason recorded, where there is
  /// none of this type.
  const Json *get(const Json &json, const char *key, Json::value_t type);
  bool getText(const Json &json, const char *key, std::string &text);
  /// `json` is a number that is not negative.
  bool getNumber(const Json &json, int64_t &number);
  bool getType(const Json &json, ManifestType &type);
  bool getExpression(const Json &json, const char *key, Expression &result);
  bool getExpressions(const Json &json, const char *key,
                      std::vector<Expression> &result);
  bool getView(const Json &json, std::optional<ManifestView> &view);
  bool getSource(const std::string &name, ManifestSource &source);

  bool refuse(const std::string &what) {
    return !fail("the manifest is malformed: %s%s%s", what.c_str(),
                 function.empty() ? "" : " in function @", function.c_str());
  }
  /// Puts where it was before the reason that was recorded.
  bool explain() { return refuse(std::string(nmsLastError())); }

  std::string function; ///< That is being read.
  ManifestFunction *result = nullptr;
  std::vector<std::vector<std::string>> caseNames; ///< For each function.
};

} // namespace nms

#endif // NM_SPARSE_LIB_MANIFEST_MANIFESTREADER_H
