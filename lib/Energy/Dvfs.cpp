//===- Dvfs.cpp - time, power and energy at other clocks ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Energy/Dvfs.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir::nm_sparse;

double DvfsKernel::getSeconds(const DvfsPoint &at) const {
  return t0 + std::max(alpha / at.memoryMHz, beta / at.coreMHz);
}

double DvfsKernel::getKnee(double memoryMHz) const {
  return alpha > 0 ? beta * memoryMHz / alpha
                   : std::numeric_limits<double>::infinity();
}

double mlir::nm_sparse::getWatts(const DvfsDevice &device,
                                 const DvfsKernel &kernel,
                                 const DvfsPoint &at) {
  return device.p0 + device.kappa * at.volts + kernel.gamma * at.memoryMHz +
         kernel.c * at.volts * at.volts * at.coreMHz;
}

double mlir::nm_sparse::getJoules(const DvfsDevice &device,
                                  const DvfsKernel &kernel,
                                  const DvfsPoint &at) {
  return getWatts(device, kernel, at) * kernel.getSeconds(at);
}

double mlir::nm_sparse::getCost(const DvfsDevice &device,
                                const DvfsKernel &kernel, const DvfsPoint &at,
                                const DvfsGoal &goal) {
  double seconds = kernel.getSeconds(at);
  return (goal.eta * getWatts(device, kernel, at) +
          (1 - goal.eta) * goal.maxWatts) *
         seconds;
}

std::optional<size_t>
mlir::nm_sparse::choosePoint(const DvfsDevice &device, const DvfsKernel &kernel,
                             const std::vector<DvfsPoint> &points,
                             const DvfsGoal &goal) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const DvfsPoint &point : points)
    shortest = std::min(shortest, kernel.getSeconds(point));
  std::optional<size_t> best;
  for (size_t i = 0; i < points.size(); ++i)
    if (kernel.getSeconds(points[i]) <= (1 + goal.maxLoss) * shortest &&
        (!best || getCost(device, kernel, points[i], goal) <
                      getCost(device, kernel, points[*best], goal)))
      best = i;
  return best;
}

double mlir::nm_sparse::getBestClock(const DvfsDevice &device,
                                     const DvfsKernel &kernel, double volts,
                                     double memoryMHz) {
  // Where the cores bound the kernel, E = (A + B f) (t0 + beta / f), whose
  // derivative B t0 - A beta / f^2 is 0 once.
  double a = device.p0 + device.kappa * volts + kernel.gamma * memoryMHz;
  double b = kernel.c * volts * volts;
  double knee = kernel.getKnee(memoryMHz);
  return b * kernel.t0 > 0
             ? std::min(knee, std::sqrt(a * kernel.beta / (b * kernel.t0)))
             : knee;
}
