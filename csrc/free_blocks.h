// A free list for small objects that are allocated by the thousand. Under the GIL only.
#pragma once

#include <cstddef>
#include <new>

namespace twofold {

// Whether freed objects are kept for the next ones. Not with a sanitizer, which would see no use of one that was freed.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kKeepsFreed = false;
#else
constexpr bool kKeepsFreed = true;
#endif

template <class T, size_t kMost>
class FreeBlocks {
 public:
  void* take() {
    if (!first_) return ::operator new(sizeof(T));
    Block* block = first_;
    first_ = block->next;
    --count_;
    return block;
  }
  void give(void* block) noexcept {
    if (count_ >= kMost || !kKeepsFreed) return ::operator delete(block);
    first_ = new (block) Block{first_};
    ++count_;
  }

 private:
  // An intrusive list, since freeing must not need memory.
  struct Block {
    Block* next;
  };
  static_assert(sizeof(T) >= sizeof(Block));

  Block* first_ = nullptr;
  size_t count_ = 0;
};

}  // namespace twofold
