//===- Memory.cpp - shadowed global memory --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Memory.h"

#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace mlir;
using namespace mlir::nm_sparse::emulator;

/// Wide enough that an index which is off by a row of 64 floats lands in it.
static constexpr size_t guardBytes = 256;

GlobalMemory::~GlobalMemory() {
  for (auto &[begin, block] : blocks)
    std::free(block.memory);
}

void *GlobalMemory::allocate(size_t bytes) {
  size_t whole = (bytes + 2 * guardBytes + 255) / 256 * 256;
  auto *memory = static_cast<char *>(std::aligned_alloc(256, whole));
  if (!memory)
    return nullptr;
  std::memset(memory, 0xff, whole);
  Block block;
  block.memory = memory;
  block.begin = reinterpret_cast<uint64_t>(memory) + guardBytes;
  block.end = block.begin + bytes;
  block.written = std::make_unique<std::atomic<uint8_t>[]>(bytes);
  std::unique_lock<std::shared_mutex> lock(mutex);
  uint64_t begin = block.begin;
  released.erase(begin);
  blocks.emplace(begin, std::move(block));
  return memory + guardBytes;
}

bool GlobalMemory::release(void *pointer) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  auto found = blocks.find(reinterpret_cast<uint64_t>(pointer));
  if (found == blocks.end())
    return false;
  released[found->second.begin] = found->second.end;
  std::free(found->second.memory);
  blocks.erase(found);
  return true;
}

void GlobalMemory::adopt(void *pointer, size_t bytes) {
  Block block;
  block.begin = reinterpret_cast<uint64_t>(pointer);
  block.end = block.begin + bytes;
  std::unique_lock<std::shared_mutex> lock(mutex);
  uint64_t begin = block.begin;
  blocks.insert_or_assign(begin, std::move(block));
}

void GlobalMemory::protect(void *pointer) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  blocks.at(reinterpret_cast<uint64_t>(pointer)).isProtected = true;
}

const GlobalMemory::Block *GlobalMemory::find(uint64_t address) {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin())
    return nullptr;
  const Block &block = std::prev(after)->second;
  return address < block.end ? &block : nullptr;
}

bool GlobalMemory::contains(uint64_t address, size_t bytes) {
  std::shared_lock<std::shared_mutex> lock(mutex);
  const Block *block = find(address);
  return block && bytes <= block->end - address;
}

std::optional<uint64_t> GlobalMemory::findUnwritten(uint64_t address,
                                                    size_t bytes) {
  std::shared_lock<std::shared_mutex> lock(mutex);
  const Block *block = find(address);
  if (!block || !block->written)
    return std::nullopt;
  uint64_t offset = address - block->begin;
  for (size_t i = 0; i < bytes; ++i)
    if (!block->written[offset + i].load(std::memory_order_relaxed))
      return address + i;
  return std::nullopt;
}

std::atomic<uint8_t> *GlobalMemory::findWriters(uint64_t address,
                                                size_t bytes) {
  const Block *block = find(address);
  if (!block || !block->written || bytes > block->end - address)
    return nullptr;
  return &block->written[address - block->begin];
}

/// `first` or one behind it.
bool GlobalMemory::hasWriter(uint64_t address, size_t bytes, Writer first) {
  std::shared_lock<std::shared_mutex> lock(mutex);
  const std::atomic<uint8_t> *writers = findWriters(address, bytes);
  return writers &&
         std::any_of(writers, writers + bytes,
                     [&](const std::atomic<uint8_t> &writer) {
                       return writer.load(std::memory_order_relaxed) >= first;
                     });
}

bool GlobalMemory::isFromKernel(uint64_t address, size_t bytes) {
  return hasWriter(address, bytes, Kernel);
}

bool GlobalMemory::isUnreleased(uint64_t address, size_t bytes) {
  return hasWriter(address, bytes, UnreleasedKernel);
}

void GlobalMemory::setUnreleased(uint64_t address, size_t bytes,
                                 bool isUnreleased) {
  std::shared_lock<std::shared_mutex> lock(mutex);
  std::atomic<uint8_t> *writers = findWriters(address, bytes);
  for (size_t i = 0; writers && i < bytes; ++i)
    if (writers[i].load(std::memory_order_relaxed) >= Kernel)
      writers[i].store(isUnreleased ? UnreleasedKernel : Kernel,
                       std::memory_order_relaxed);
}

std::string GlobalMemory::access(uint64_t address, size_t bytes,
                                 AccessKind kind, bool fromKernel) {
  std::shared_lock<std::shared_mutex> lock(mutex);
  const Block *block = find(address);
  if (!block || bytes > block->end - address) {
    auto nearest = blocks.lower_bound(address);
    if (block) // begins inside
      return llvm::formatv("{0} bytes at {1:x} reach past the end of an "
                           "allocation of {2} bytes, at offset {3}",
                           bytes, address, block->end - block->begin,
                           address - block->begin);
    auto old = released.upper_bound(address);
    if (old != released.begin() && address < std::prev(old)->second)
      return llvm::formatv("{0:x} is in memory that was freed", address);
    if (nearest != blocks.begin()) {
      const Block &before = std::prev(nearest)->second;
      if (address - before.end < (1u << 20))
        return llvm::formatv(
            "{0:x} is {1} bytes behind the end of an allocation of {2} bytes",
            address, address - before.end, before.end - before.begin);
    }
    if (nearest != blocks.end() && nearest->second.begin - address < (1u << 20))
      return llvm::formatv(
          "{0:x} is {1} bytes before an allocation of {2} bytes", address,
          nearest->second.begin - address,
          nearest->second.end - nearest->second.begin);
    return llvm::formatv("{0:x} is not device memory", address);
  }
  if (block->isProtected && writes(kind))
    return llvm::formatv("{0:x} is in a parameter that is passed by value, "
                         "which is only to be read",
                         address);
  if (!block->written)
    return {};
  std::atomic<uint8_t> *written = &block->written[address - block->begin];
  for (size_t i = 0; i < bytes; ++i) {
    if (reads(kind) && !written[i].load(std::memory_order_relaxed))
      return llvm::formatv("reads what nothing wrote: offset {0} of an "
                           "allocation of {1} bytes",
                           address + i - block->begin,
                           block->end - block->begin);
    if (writes(kind))
      written[i].store(fromKernel ? Kernel : Host, std::memory_order_relaxed);
  }
  return {};
}
