#include "large_blocks.h"

#include <sys/mman.h>

#include <algorithm>

namespace twofold {

namespace {

constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kManyPages = 2 * kHugePage;  // bytes from which on huge pages save more than they waste

void* map_pages(size_t size) noexcept {
  void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

}  // namespace

// A first touch of a huge page costs a third of that of its 512 small ones. The block begins where one begins.
void* LargeBlocks::map(size_t size) noexcept {
#ifdef MADV_HUGEPAGE
  if (size >= kManyPages) {
    void* whole = map_pages(size + kHugePage);
    if (!whole) return map_pages(size);
    const auto start = reinterpret_cast<uintptr_t>(whole);
    const uintptr_t block = (start + kHugePage - 1) / kHugePage * kHugePage;
    if (block > start) munmap(whole, block - start);
    if (start + kHugePage > block) munmap(reinterpret_cast<void*>(block + size), start + kHugePage - block);
    madvise(reinterpret_cast<void*>(block), size, MADV_HUGEPAGE);  // a hint: a system without them uses small ones
    return reinterpret_cast<void*>(block);
  }
#endif
  return map_pages(size);
}

void LargeBlocks::unmap(void* block, size_t size) noexcept { munmap(block, size); }

// The nodes of both tables are reused, so no allocation can fail.
void LargeBlocks::resize(Holes::iterator hole, size_t size) {
  bytes_ -= hole->second - size;
  auto entry = by_size_.extract({hole->second, hole->first});
  if (size == 0) {
    holes_.erase(hole);
    return;
  }
  hole->second = size;
  entry.value() = {size, hole->first};
  by_size_.insert(std::move(entry));
}

void* LargeBlocks::take(size_t size) {
  auto found = by_size_.lower_bound({size, 0});
  if (found == by_size_.end()) return nullptr;
  auto hole = holes_.find(found->second);
  const uintptr_t start = hole->first + hole->second - size;
  resize(hole, hole->second - size);
  return reinterpret_cast<void*>(start);
}

void LargeBlocks::give(void* block, size_t size) {
  const auto start = reinterpret_cast<uintptr_t>(block);
  const auto hole = holes_.emplace(start, size).first;
  try {
    by_size_.emplace(size, start);
  } catch (...) {
    holes_.erase(hole);
    throw;
  }
  bytes_ += size;
  auto join = [&](Holes::iterator below, Holes::iterator above) {  // the one above goes
    const size_t both = below->second + above->second;
    by_size_.erase({above->second, above->first});
    auto entry = by_size_.extract({below->second, below->first});
    below->second = both;
    entry.value() = {both, below->first};
    by_size_.insert(std::move(entry));
    holes_.erase(above);
  };
  const auto above = std::next(hole);
  if (above != holes_.end() && start + size == above->first) join(hole, above);
  if (hole == holes_.begin()) return;
  const auto below = std::prev(hole);
  if (below->first + below->second == start) join(below, hole);
}

size_t LargeBlocks::trim(size_t wanted) noexcept {
  size_t given = 0;
  while (given < wanted && !by_size_.empty()) {
    const auto hole = holes_.find(by_size_.rbegin()->second);
    const size_t size = std::min(hole->second, rounded(wanted - given));
    unmap(reinterpret_cast<void*>(hole->first + hole->second - size), size);
    resize(hole, hole->second - size);
    given += size;
  }
  return given;
}

}  // namespace twofold
