//===- LaunchGroups.cpp - launches that can be one ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a launch on, the block is read forwards. The launches of a group move
// down to the last of them, so whatever else uses what they write, or writes
// what they use, ends the group. Only frees move along.
//
//===----------------------------------------------------------------------===//

#include "Launch/LaunchGroups.h"

#include "Launch/Hints.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "nm_sparse/Chip/Occupancy.h"
#include "nm_sparse/GPU/LaunchAccesses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::nm_sparse;

std::optional<int64_t> nm_sparse::getStaticSize(Value size) {
  return getConstantIntValue(size);
}

int64_t LaunchGroup::countCtas(gpu::LaunchFuncOp launch) const {
  int64_t ctas = *getStaticSize(launch.getGridSizeY()) *
                 *getStaticSize(launch.getGridSizeZ());
  return keepsX ? ctas : ctas * *getStaticSize(launch.getGridSizeX());
}

namespace {

/// A launch with what decides on whether it joins others.
struct Candidate {
  gpu::LaunchFuncOp launch;
  gpu::GPUFuncOp kernel;
  Accesses accesses;
  int64_t threads = 1, ctas = 1, sharedBytes = 0;
};

} // namespace

/// The place of a CTA, or of a cluster, that is not asked for by gpu.block_id
/// and gpu.grid_dim.
static bool asksElsewhere(gpu::GPUFuncOp kernel) {
  return kernel
      .walk([](Operation *op) {
        StringRef name = op->getName().getStringRef();
        bool asks = isa<gpu::GlobalIdOp, gpu::ClusterIdOp, gpu::ClusterDimOp,
                        gpu::ClusterBlockIdOp, gpu::ClusterDimBlocksOp>(op) ||
                    name.starts_with("nvvm.read.ptx.sreg.ctaid") ||
                    name.starts_with("nvvm.read.ptx.sreg.nctaid") ||
                    name.starts_with("nvvm.read.ptx.sreg.cluster");
        return asks ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns true if the kernels are compiled and launched within the same
/// bounds.
static bool haveSameBounds(gpu::GPUFuncOp a, gpu::GPUFuncOp b) {
  auto getAttributes = [](gpu::GPUFuncOp kernel) {
    NamedAttrList attributes(llvm::to_vector(kernel->getDialectAttrs()));
    return attributes.getDictionary(kernel.getContext());
  };
  return a.getKnownBlockSizeAttr() == b.getKnownBlockSizeAttr() &&
         getAttributes(a) == getAttributes(b);
}

/// CTAs that an SM runs at once, as far as threads and shared memory bound it.
static int64_t countCtasPerSM(const Candidate &candidate, int64_t sharedBytes,
                              const Chip &chip) {
  // With so few registers, an SM runs out of threads first.
  constexpr int64_t fewRegisters = 32;
  return std::min(
      getCtasByRegisters(candidate.threads, fewRegisters),
      std::max<int64_t>(1, getCtasBySharedMemory(sharedBytes, chip)));
}

/// Why `candidate` joins no other; empty where it may.
static std::string whyAlone(const Candidate &candidate, const Chip &chip,
                            double maxWaves) {
  gpu::LaunchFuncOp launch = candidate.launch;
  gpu::GPUFuncOp kernel = candidate.kernel;
  if (launch.getAsyncToken() || !launch.getAsyncDependencies().empty() ||
      launch.getAsyncObject())
    return "is asynchronous";
  if (launch.hasClusterSize())
    return "has clusters";
  if (findHints(kernel).getHasSm())
    return "overlaps with those around it, for its CTAs have an SM each";
  ArrayAttr arguments = kernel.getAllArgAttrs();
  if (!kernel.getBody().hasOneBlock() || kernel.getNumWorkgroupAttributions() ||
      kernel.getNumPrivateAttributions() || (arguments && !arguments.empty()))
    return "has a kernel with blocks, buffers or argument attributes of its "
           "own";
  if (asksElsewhere(kernel))
    return "has a kernel that asks for more than gpu.block_id and "
           "gpu.grid_dim";
  Value shared = launch.getDynamicSharedMemorySize();
  if (!getStaticSize(launch.getGridSizeY()) ||
      !getStaticSize(launch.getGridSizeZ()) ||
      (shared && !getStaticSize(shared)))
    return "has a grid, beyond x, or a size of shared memory that is not "
           "constant";
  double waves = double(candidate.ctas) /
                 double(countCtasPerSM(candidate, candidate.sharedBytes, chip) *
                        chip.multiprocessors);
  if (waves > maxWaves)
    return llvm::formatv("has {0:F1} waves of CTAs, where {1:F1} are the most "
                         "that gain by a launch in common",
                         waves, maxWaves);
  return "";
}

namespace {

/// A group while it grows.
class Collector {
public:
  Collector(Candidate first, const Chip &chip, AliasAnalysis &aliases)
      : chip(chip), aliases(aliases), inputs(first.accesses.read) {
    add(std::move(first));
  }

  LaunchGroup group;

  const Candidate &getFirst() const { return members.front(); }
  /// Buffers that `candidate` reads, and all members do.
  SmallVector<Value> getCommonInputs(const Candidate &candidate) const {
    return llvm::to_vector(llvm::make_filter_range(inputs, [&](Value input) {
      return llvm::is_contained(candidate.accesses.read, input);
    }));
  }
  bool isIndependent(const Accesses &accesses) const {
    return llvm::none_of(members, [&](const Candidate &member) {
      return dependOnOrder(member.accesses, accesses, aliases);
    });
  }
  std::string whyNot(const Candidate &candidate) const;
  void join(Candidate candidate) {
    inputs = getCommonInputs(candidate);
    group.keepsX = keepsX(candidate);
    add(std::move(candidate));
  }

private:
  void add(Candidate candidate) {
    group.launches.push_back(candidate.launch);
    members.push_back(std::move(candidate));
  }
  bool keepsX(const Candidate &candidate) const {
    gpu::LaunchFuncOp first = getFirst().launch, other = candidate.launch;
    return group.keepsX &&
           isEqualConstantIntOrValue(getAsOpFoldResult(first.getGridSizeX()),
                                     getAsOpFoldResult(other.getGridSizeX()));
  }
  bool fitsGrid(const Candidate &candidate) const;
  int64_t countParameterBytes(const Candidate &candidate) const;

  const Chip &chip;
  AliasAnalysis &aliases;
  SmallVector<Candidate> members;
  SmallVector<Value> inputs;
};

/// Returns true if there is a grid for all CTAs.
bool Collector::fitsGrid(const Candidate &candidate) const {
  LaunchGroup all = group;
  all.keepsX = keepsX(candidate);
  all.launches.push_back(candidate.launch);
  int64_t ctas = 0;
  for (gpu::LaunchFuncOp launch : all.launches) {
    if (!all.keepsX && !getStaticSize(launch.getGridSizeX()))
      return false;
    ctas += all.countCtas(launch);
  }
  return ctas <= (all.keepsX ? 65535 : std::numeric_limits<int32_t>::max());
}

/// Counts the bytes of all arguments; a buffer is passed with its sizes and
/// strides.
int64_t Collector::countParameterBytes(const Candidate &candidate) const {
  SmallVector<gpu::LaunchFuncOp> launches(group.launches);
  launches.push_back(candidate.launch);
  llvm::DenseSet<Value> operands;
  for (gpu::LaunchFuncOp launch : launches)
    operands.insert_range(launch.getKernelOperands());
  int64_t bytes = 0;
  for (Value operand : operands) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    bytes += 8 * (type ? 3 + 2 * type.getRank() : 1);
  }
  return bytes;
}

/// Why `candidate` cannot join; empty where it can.
std::string Collector::whyNot(const Candidate &candidate) const {
  // The size that every chip and driver takes.
  constexpr int64_t mostParameterBytes = 4096;
  const Candidate &first = getFirst();
  if (!isIndependent(candidate.accesses))
    return "one uses what the other writes";
  if (first.kernel->getParentOp() != candidate.kernel->getParentOp())
    return "their kernels lie in different modules";
  auto getThreads = [](gpu::LaunchFuncOp launch) {
    gpu::KernelDim3 size = launch.getBlockSizeOperandValues();
    return std::array<OpFoldResult, 3>{getAsOpFoldResult(size.x),
                                       getAsOpFoldResult(size.y),
                                       getAsOpFoldResult(size.z)};
  };
  if (!isEqualConstantIntOrValueArray(getThreads(first.launch),
                                      getThreads(candidate.launch)))
    return llvm::formatv("its CTAs have {0} threads, and the other's {1}",
                         candidate.threads, first.threads);
  if (!haveSameBounds(first.kernel, candidate.kernel))
    return "their kernels have different bounds of registers or threads";
  if (!fitsGrid(candidate))
    return "their grids differ in a dimension that is not constant, or are "
           "too large for one";
  if (countParameterBytes(candidate) > mostParameterBytes)
    return llvm::formatv("all parameters together are more than {0} bytes",
                         mostParameterBytes);
  int64_t shared = candidate.sharedBytes;
  for (const Candidate &member : members)
    shared = std::max(shared, member.sharedBytes);
  auto losesCtas = [&](const Candidate &member) {
    return countCtasPerSM(member, shared, chip) <
           countCtasPerSM(member, member.sharedBytes, chip);
  };
  if (losesCtas(candidate) || llvm::any_of(members, losesCtas))
    return llvm::formatv("with {0} bytes of shared memory, fewer CTAs of one "
                         "would fit on an SM",
                         shared);
  return "";
}

} // namespace

/// `op` as a launch that may share, where its kernel says so.
static std::optional<Candidate> findCandidate(Operation *op,
                                              SymbolTableCollection &symbols) {
  auto launch = dyn_cast<gpu::LaunchFuncOp>(op);
  auto kernel = launch ? symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
                             launch, launch.getKernelAttr())
                       : gpu::GPUFuncOp();
  HintsOp hints = kernel ? findHints(kernel) : HintsOp();
  if (!hints || !hints.getSharesLaunch())
    return std::nullopt;
  std::optional<Accesses> accesses = getAccesses(launch, symbols);
  if (!accesses)
    return std::nullopt;
  Candidate candidate{launch, kernel, std::move(*accesses)};
  for (Value size :
       {launch.getBlockSizeX(), launch.getBlockSizeY(), launch.getBlockSizeZ()})
    candidate.threads *= getStaticSize(size).value_or(1);
  // A dimension that is not known is that of tokens, which are few.
  for (Value size :
       {launch.getGridSizeX(), launch.getGridSizeY(), launch.getGridSizeZ()})
    candidate.ctas *= getStaticSize(size).value_or(1);
  if (Value bytes = launch.getDynamicSharedMemorySize())
    candidate.sharedBytes = getStaticSize(bytes).value_or(0);
  return candidate;
}

/// Returns true if `op` frees a buffer and does nothing else.
static bool isRelease(Operation *op) {
  return isa<gpu::DeallocOp, memref::DeallocOp>(op) && op->getNumResults() == 0;
}

namespace {

/// Looks for the groups of one block.
class Search {
public:
  Search(Block &block, const Chip &chip, double maxWaves,
         SymbolTableCollection &symbols)
      : chip(chip), maxWaves(maxWaves), symbols(symbols),
        aliases(block.getParentOp()) {
    for (Operation &op : block)
      if (std::optional<Candidate> candidate = findCandidate(&op, symbols))
        candidates.insert({&op, std::move(*candidate)});
  }

  SmallVector<LaunchGroup> run();

private:
  LaunchGroup collect(const Candidate &first);
  std::string whyNot(const Collector &collector, const Candidate &other,
                     Operation *obstacle) const;
  void explain(const Candidate &first, gpu::LaunchFuncOp other, StringRef why);

  const Chip &chip;
  double maxWaves;
  SymbolTableCollection &symbols;
  AliasAnalysis aliases;
  llvm::MapVector<Operation *, Candidate> candidates;
  /// Launches of the groups so far, and those of which was said why not.
  llvm::DenseSet<Operation *> taken, explained;
};

/// Why `other` does not join, where `obstacle`, if any, is in between.
std::string Search::whyNot(const Collector &collector, const Candidate &other,
                           Operation *obstacle) const {
  std::string why = whyAlone(collector.getFirst(), chip, maxWaves);
  if (!why.empty())
    return "that one " + why;
  why = whyAlone(other, chip, maxWaves);
  if (!why.empty())
    return "it " + why;
  why = collector.whyNot(other);
  if (why.empty() && obstacle)
    return llvm::formatv("'{0}' between them uses the same buffers",
                         obstacle->getName());
  return why;
}

/// Once for each launch: with others it is mostly for the same reason.
void Search::explain(const Candidate &first, gpu::LaunchFuncOp other,
                     StringRef why) {
  gpu::GPUFuncOp kernel = first.kernel;
  if (explained.insert(other).second)
    other.emitRemark("is not launched together with @")
        << kernel.getName() << ": " << why;
}

/// The group of `first` and of what follows it in its block.
LaunchGroup Search::collect(const Candidate &first) {
  Collector collector(first, chip, aliases);
  Operation *obstacle = nullptr;
  SmallVector<Operation *> releases;
  for (Operation *op = first.launch->getNextNode(); op;
       op = op->getNextNode()) {
    const auto *found = candidates.find(op);
    if (found != candidates.end() && !taken.contains(op) &&
        !collector.getCommonInputs(found->second).empty()) {
      std::string why = whyNot(collector, found->second, obstacle);
      if (why.empty()) {
        collector.join(found->second);
        collector.group.releases.append(std::exchange(releases, {}));
        continue;
      }
      explain(first, found->second.launch, why);
    }
    if (obstacle || isMemoryEffectFree(op))
      continue;
    std::optional<Accesses> accesses = getAccesses(op, symbols);
    if (accesses && collector.isIndependent(*accesses))
      continue;
    if (isRelease(op))
      releases.push_back(op);
    else
      obstacle = op;
  }
  return std::move(collector.group);
}

SmallVector<LaunchGroup> Search::run() {
  SmallVector<LaunchGroup> groups;
  for (const auto &[op, candidate] : candidates) {
    if (taken.contains(op))
      continue;
    LaunchGroup group = collect(candidate);
    if (group.launches.size() == 1)
      continue;
    taken.insert_range(group.launches);
    groups.push_back(std::move(group));
  }
  return groups;
}

} // namespace

SmallVector<LaunchGroup>
nm_sparse::findLaunchGroups(Block &block, const Chip &chip, double maxWaves,
                            SymbolTableCollection &symbols) {
  return Search(block, chip, maxWaves, symbols).run();
}
