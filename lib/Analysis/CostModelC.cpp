//===- CostModelC.cpp - the cost model's formula for other languages ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Analysis/CostModelC.h"

#include "nm_sparse/Analysis/CombineDense.h"
#include "nm_sparse/Analysis/CombineWork.h"
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

const char *nmsWorkName(unsigned i) { return getName(workFields, i); }

const char *nmsProductCostName(unsigned i) {
  return getName(productCostFields, i);
}

const char *nmsSharedCostName(unsigned i) {
  return getName(sharedCostFields, i);
}

const char *nmsDenseWorkName(unsigned i) { return getName(denseWorkFields, i); }

const char *nmsDenseCostName(unsigned i) { return getName(denseCostFields, i); }

void nmsCombineWork(unsigned count, const double *work,
                    const double *productCosts, const double *sharedCosts,
                    double *seconds) {
  SharedCosts shared = read(sharedCostFields, sharedCosts);
  for (unsigned i = 0; i < count; ++i)
    seconds[i] =
        combineWork(read(workFields, work + i * std::size(workFields)),
                    read(productCostFields,
                         productCosts + i * std::size(productCostFields)),
                    shared)
            .seconds;
}

void nmsCombineDense(unsigned count, const double *work, const double *costs,
                     double *seconds) {
  DenseCosts given = read(denseCostFields, costs);
  for (unsigned i = 0; i < count; ++i)
    seconds[i] = combineDense(
        read(denseWorkFields, work + i * std::size(denseWorkFields)), given);
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
