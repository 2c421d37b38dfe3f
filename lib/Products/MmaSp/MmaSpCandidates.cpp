//===- MmaSpCandidates.cpp - schedules worth comparing --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MmaSpCandidates.h"
#include "../ProductAttrs.h"

using namespace mlir;
using namespace mlir::nm_sparse;

using Shape = ScheduleEnumerator::Shape;

// Warps of 64 x 64 read the fewest bytes of shared memory for a product that
// registers hold. A fragment has 8 tokens, so that few of them waste little.
static constexpr Shape shapes[] = {
    {256, 128, 4, 2}, {128, 256, 2, 4}, {128, 128, 2, 2}, {64, 256, 1, 4},
    {64, 128, 1, 2},  {64, 128, 2, 2},  {64, 64, 2, 2},   {48, 128, 1, 4},
    {32, 256, 1, 4},  {32, 128, 1, 4},  {24, 128, 1, 4},  {16, 128, 1, 4},
    {16, 64, 1, 2},   {8, 128, 1, 4},   {8, 64, 1, 2}};

static constexpr ScheduleEnumerator::Modes modes[] = {{"copy", "staged"}};

void nm_sparse::proposeMmaSp(ScheduleEnumerator &to) {
  const MatmulProblem &problem = to.problem;
  EncodingAttr encoding = to.encoding;
  if (!problem.bitmap || !encoding.isTwoOfFour() || !problem.format ||
      !problem.format->sparseMma ||
      !problem.format->sparseMma->existsOn(to.chip.name))
    return;
  // Chips whose warpgroups multiply 2:4 do that twice as fast. Elements of 8
  // bits are not transposed on their way.
  if (to.chip.wgmma > 0 || (problem.elementBytes == 1 && problem.xFeatureMajor))
    return;
  ScheduleEnumerator::Choices choices;
  choices.rows = {MmaSpAttr::kPairRows / 2, MmaSpAttr::kPairRows};
  choices.modes = modes;
  choices.alignsPanels = false;
  for (Shape shape : shapes)
    to.addShape(MmaSpAttr::get(encoding.getContext(),
                               {shape.warpsTokens, shape.warpsOutputs}),
                shape, {}, choices);
}
