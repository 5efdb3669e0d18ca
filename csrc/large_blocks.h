// Memory from the system for large blocks: what is freed joins its neighbours, and is divided for what is asked next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace twofold {

class LargeBlocks {
 public:
  static constexpr size_t kGrain = size_t{1} << 14;  // of sizes, so that few holes are left that nothing fits in

  static size_t rounded(size_t nbytes) { return (nbytes + kGrain - 1) / kGrain * kGrain; }
  // Of a rounded size: from the smallest hole that holds it; null if none does.
  void* take(size_t size);
  // Makes a hole of it; may throw std::bad_alloc, and then the block is as it was.
  void give(void* block, size_t size);
  // Gives so many bytes of holes back to the system, the largest first; returns how many there were.
  size_t trim(size_t wanted) noexcept;
  size_t bytes() const { return bytes_; }  // of all holes

  static void* map(size_t size) noexcept;  // from the system; null where there is no memory
  static void unmap(void* block, size_t size) noexcept;

 private:
  using Holes = std::map<uintptr_t, size_t>;  // bytes by where they begin; no two touch

  void resize(Holes::iterator hole, size_t size);  // to less, from its beginning

  Holes holes_;
  std::set<std::pair<size_t, uintptr_t>> by_size_;
  size_t bytes_ = 0;
};

}  // namespace twofold
