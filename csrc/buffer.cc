#include <Python.h>

#include "buffer.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "free_blocks.h"
#include "kept_results.h"
#include "shared_copies.h"
#include "large_blocks.h"
#include "out_of_memory.h"
#include "spin_lock.h"

namespace twofold {
namespace {

// Eight size classes for each power of two, so that at most an eighth of a block is wasted.
constexpr size_t kClasses = 8 * 48;
constexpr size_t kMaxCached = size_t{4} << 30;
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kLarge = SIZE_MAX;  // with a sanitizer, blocks come from the C library, whose bounds it checks
#else
constexpr size_t kLarge = size_t{1} << 17;  // bytes from which on blocks are split and coalesced
#endif
constexpr size_t kSlack = size_t{32} << 20;  // bytes of cached blocks that are always allowed
FreeBlocks<Buffer, (size_t{1} << 15)> free_buffers;

struct Block {
  void* data;
  size_t capacity;
};

struct Pool {
  SpinLock lock;
  std::vector<Block> free[kClasses];  // small ones
  LargeBlocks large;
  PoolStatistics statistics{0, 0, 0};
  size_t most = 0;   // peak bytes in use
  size_t slack = 0;  // bytes that may be cached beyond that: more if blocks are freed repeatedly

  void use(size_t capacity) {
    statistics.in_use += capacity;
    statistics.peak = std::max(statistics.peak, statistics.in_use);
    most = std::max(most, statistics.in_use);
  }
};

Pool& pool() {
  static Pool& instance = *new Pool();
  return instance;
}

size_t round_capacity(size_t nbytes, size_t* size_class) {
  *size_class = 0;
  if (nbytes >= kLarge) return LargeBlocks::rounded(nbytes);
  size_t wanted = nbytes < kAlignment ? kAlignment : nbytes;
  unsigned exponent = static_cast<unsigned>(std::bit_width(wanted - 1));
  const size_t step = exponent > 9 ? size_t{1} << (exponent - 4) : kAlignment;  // a power of two
  const auto steps = [step](size_t size) { return (size + step - 1) >> std::countr_zero(step); };
  const size_t capacity = steps(wanted) * step;
  const size_t base = exponent ? size_t{1} << (exponent - 1) : 0;
  const size_t offset = capacity > base ? steps(capacity - base) : 0;
  *size_class = exponent * 8 + (offset > 8 ? 8 : offset);
  if (*size_class >= kClasses) *size_class = kClasses - 1;
  return capacity;
}

// Null if there is no memory.
void* system_allocate(size_t capacity) {
  return capacity < kLarge ? std::aligned_alloc(kAlignment, capacity) : LargeBlocks::map(capacity);
}

void system_free(void* block, size_t capacity) noexcept {
  if (capacity < kLarge) {
    std::free(block);
  } else {
    LargeBlocks::unmap(block, capacity);
  }
}

// The limit of cached bytes while `used` bytes are in use: in all little more than the peak, up to a quarter if
// blocks are freed to the system repeatedly. Otherwise a program with changing sizes would hold the sum of all sizes.
size_t allowed_beside(const Pool& p, size_t used) {
  const size_t most = std::max(p.most, used);
  return std::max(most + std::min(most / 32 + p.slack, most / 4) - used, kSlack);
}

// Frees large blocks above the limit, before `capacity` more bytes are mapped.
void make_way(Pool& p, size_t capacity) {
  const size_t allowed = allowed_beside(p, p.statistics.in_use + capacity);
  if (p.statistics.cached <= allowed) return;
  const size_t given = p.large.trim(p.statistics.cached - allowed);
  p.statistics.cached -= given;
  p.slack += given / 16;
}

// A cached block; null if there is none.
void* take_cached(Pool& p, size_t size_class, size_t capacity) {
  if (capacity >= kLarge) return p.large.take(capacity);
  auto& blocks = p.free[size_class];
  if (blocks.empty()) return nullptr;
  void* found = blocks.back().data;
  blocks.pop_back();
  return found;
}

}  // namespace

bool Buffer::shared_outside() const {
  if ((whole ? whole->exports : exports) > 0 || always_shared) return true;
  return owner != nullptr && (Py_REFCNT(owner) > 1 || (base != nullptr && Py_REFCNT(base) > 1));
}

uint64_t Buffer::content() {
  static uint64_t numbers = 0;
  const Buffer& memory = whole ? *whole : *this;
  // What an array is a view of may be mapped by other processes.
  if (shared_outside() || memory.is_pointed_at || memory.base) return 0;
  if (content_number == 0 || seen_handovers != handover_count()) {
    content_number = ++numbers;
    seen_handovers = handover_count();
  }
  return content_number;
}

void* pool_allocate(size_t nbytes, size_t* capacity) {
  size_t size_class;
  if (nbytes > (size_t{1} << 46)) throw OutOfMemory(nbytes);
  *capacity = round_capacity(nbytes, &size_class);
  Pool& p = pool();
  {
    std::lock_guard guard(p.lock);
    if (void* cached = take_cached(p, size_class, *capacity)) {
      p.statistics.cached -= *capacity;
      p.use(*capacity);
      return cached;
    }
    if (*capacity >= kLarge) make_way(p, *capacity);
  }
  void* block = system_allocate(*capacity);
  if (!block) {
    pool_trim();
    block = system_allocate(*capacity);
    if (!block) throw OutOfMemory(nbytes);
  }
  std::lock_guard guard(p.lock);
  p.use(*capacity);
  return block;
}

void pool_release(void* data, size_t capacity) noexcept {
  size_t size_class;
  round_capacity(capacity, &size_class);
  Pool& p = pool();
  {
    std::lock_guard guard(p.lock);
    p.statistics.in_use -= capacity;
    if (p.statistics.cached + capacity <= kMaxCached) {
      try {
        if (capacity < kLarge) {
          p.free[size_class].push_back(Block{data, capacity});
        } else {
          p.large.give(data, capacity);
        }
        p.statistics.cached += capacity;
        return;
      } catch (...) {
      }
    }
  }
  system_free(data, capacity);
}

void pool_trim() noexcept {
  Pool& p = pool();
  std::lock_guard guard(p.lock);
  for (auto& blocks : p.free) {
    for (const Block& block : blocks) system_free(block.data, block.capacity);
    blocks.clear();
  }
  p.large.trim(p.large.bytes());
  p.statistics.cached = 0;
}

PoolStatistics pool_statistics() {
  std::lock_guard guard(pool().lock);
  return pool().statistics;
}

void pool_reset_peak() {
  std::lock_guard guard(pool().lock);
  pool().statistics.peak = pool().statistics.in_use;
}

Buffer* new_buffer(size_t nbytes) {
  auto* buffer = new (free_buffers.take()) Buffer();
  try {
    buffer->data = pool_allocate(nbytes, &buffer->capacity);
  } catch (...) {
    free_buffers.give(buffer);
    throw;
  }
  buffer->nbytes = nbytes;
  return buffer;
}

Buffer* part_of_buffer(Buffer* whole, void* data, size_t nbytes) {
  auto* buffer = new (free_buffers.take()) Buffer();
  buffer->data = data;
  buffer->nbytes = nbytes;
  buffer->whole = whole;
  ++whole->references;
  return buffer;
}

Buffer* foreign_buffer(void* data, size_t nbytes, PyObject* owner, PyObject* base, bool read_only, bool always_shared) {
  auto* buffer = new (free_buffers.take()) Buffer();
  buffer->data = data;
  buffer->nbytes = nbytes;
  buffer->owner = owner;
  buffer->base = base;
  buffer->read_only = read_only;
  buffer->always_shared = always_shared;
  Py_INCREF(owner);
  return buffer;
}

void Buffer::forget_kept() noexcept {
  has_kept = false;
  forget_kept_results_of(content_number);
}

void destroy_buffer(Buffer* buffer) noexcept {
  if (buffer->has_kept) buffer->forget_kept();
  if (buffer->has_copy) forget_shared_copy(buffer);
  if (buffer->whole) {
    if (--buffer->whole->references == 0) destroy_buffer(buffer->whole);
  } else if (buffer->owner) {
    Py_DECREF(buffer->owner);
  } else {
    pool_release(buffer->data, buffer->capacity);
  }
  free_buffers.give(buffer);
}

}  // namespace twofold
