//===- CostModelC.cpp - the cost model's formula for other languages ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostModelC.h"

#include "nm_sparse/Analysis/CombineTerms.h"
#include "nm_sparse/Energy/CombineEnergy.h"
#include "nm_sparse/Energy/LeastSquares.h"
#include <algorithm>
#include <cstddef>
#include <iterator>

using namespace mlir::nm_sparse;

template <typename T, size_t N>
static const char *getName(const NamedField<T> (&fields)[N], unsigned i) {
  return i < N ? fields[i].name : nullptr;
}

template <typename T, size_t N>
static T read(const NamedField<T> (&fields)[N], const double *numbers) {
  T result;
  for (size_t i = 0; i < N; ++i)
    result.*fields[i].field = numbers[i];
  return result;
}

const char *nmsCostTermName(unsigned i) { return getName(costTermFields, i); }

const char *nmsFamilyCostName(unsigned i) {
  return getName(familyCostFields, i);
}

const char *nmsSharedCostName(unsigned i) {
  return getName(sharedCostFields, i);
}

double nmsCombineTerms(const double *terms, const double *familyCosts,
                       const double *sharedCosts) {
  return combineTerms(read(costTermFields, terms),
                      read(familyCostFields, familyCosts),
                      read(sharedCostFields, sharedCosts))
      .seconds;
}

void nmsCombineAllTerms(unsigned count, const double *terms,
                        const double *familyCosts, const double *sharedCosts,
                        double *seconds) {
  for (unsigned i = 0; i < count; ++i)
    seconds[i] = nmsCombineTerms(terms + i * std::size(costTermFields),
                                 familyCosts + i * std::size(familyCostFields),
                                 sharedCosts);
}

const char *nmsEnergyEventName(unsigned i) {
  return getName(energyEventFields, i);
}

const char *nmsEnergyCostName(unsigned i) {
  return getName(energyCostFields, i);
}

double nmsCombineEnergy(const double *events, double seconds,
                        const double *costs, int isOfManyRuns) {
  return combineEnergy(read(energyEventFields, events), seconds,
                       read(energyCostFields, costs),
                       isOfManyRuns ? TimeOf::ManyRuns : TimeOf::FewRuns)
      .joules;
}

void nmsSolveNonNegative(unsigned rows, unsigned columns, const double *numbers,
                         const double *wanted, double *solution) {
  std::vector<double> found =
      solveNonNegative({numbers, numbers + size_t(rows) * columns}, columns,
                       {wanted, wanted + rows});
  std::copy(found.begin(), found.end(), solution);
}
