// An allocator of large blocks: best fit with splitting and coalescing over memory that is mapped from the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace twofold {

class LargeBlocks {
 public:
  static constexpr size_t kGrain = size_t{1} << 14;  // granularity of sizes, against fragmentation

  static size_t rounded(size_t nbytes) { return (nbytes + kGrain - 1) / kGrain * kGrain; }
  // Allocates a rounded size from the smallest free block that holds it; null if there is none.
  void* take(size_t size);
  // Frees a block; may throw std::bad_alloc, and then the block stays allocated.
  void give(void* block, size_t size);
  // Unmaps free blocks of so many bytes, the largest first; returns the bytes.
  size_t trim(size_t wanted) noexcept;
  size_t bytes() const { return bytes_; }  // of all free blocks

  static void* map(size_t size) noexcept;  // from the system; null where there is no memory
  static void unmap(void* block, size_t size) noexcept;

 private:
  using Holes = std::map<uintptr_t, size_t>;  // sizes by address; adjacent ones are coalesced

  void resize(Holes::iterator hole, size_t size);  // shrinks a free block from its start

  Holes holes_;
  std::set<std::pair<size_t, uintptr_t>> by_size_;
  size_t bytes_ = 0;
};

}  // namespace twofold
