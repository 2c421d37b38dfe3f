/*===- CostModelC.h - the cost model's formula for other languages --*- C
-*-===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* libnm_sparse_cost_model.so. Numbers are in arrays, in the order of the names
|* below; `nm-compile --candidates` prints the same names.
|*
\*===----------------------------------------------------------------------===*/

#ifndef NM_SPARSE_ANALYSIS_COSTMODELC_H
#define NM_SPARSE_ANALYSIS_COSTMODELC_H

#ifdef __cplusplus
extern "C" {
#endif

/* The name of a kind of work or of cost; null past the last. */
const char *nmsWorkName(unsigned i);
const char *nmsProductCostName(unsigned i);
const char *nmsSharedCostName(unsigned i);
const char *nmsDenseWorkName(unsigned i);
const char *nmsDenseCostName(unsigned i);

/* Seconds of `count` schedules, which have a row of `work` and of
 * `productCosts` each. */
void nmsCombineWork(unsigned count, const double *work,
                    const double *productCosts, const double *sharedCosts,
                    double *seconds);

/* Seconds of `count` dense products, which have a row of `work` each. */
void nmsCombineDense(unsigned count, const double *work, const double *costs,
                     double *seconds);

/* The name of event or cost of the energy model `i`; null past the last. */
const char *nmsEnergyEventName(unsigned i);
const char *nmsEnergyCostName(unsigned i);

/* Joules, of a product that takes so many seconds: in a few runs, as the cost
 * model predicts, or where `isOfManyRuns` is not 0, in a loop of seconds. */
double nmsCombineEnergy(const double *events, double seconds,
                        const double *costs, int isOfManyRuns);

/* Writes to `solution` the `columns` coefficients, none of them negative, for
 * which the rows times them are closest to `wanted`. */
void nmsSolveNonNegative(unsigned rows, unsigned columns, const double *numbers,
                         const double *wanted, double *solution);

#ifdef __cplusplus
}
#endif

#endif /* NM_SPARSE_ANALYSIS_COSTMODELC_H */
