#include <Python.h>

#include "buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "out_of_memory.h"

namespace twofold {
namespace {

// Eight classes to each power of two, so that at most an eighth of a block is wasted.
constexpr size_t kClasses = 8 * 48;
constexpr size_t kMaxCached = size_t{4} << 30;
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kMapped = SIZE_MAX;  // the sanitizer watches the ends of what the C library allocates
#else
constexpr size_t kMapped = size_t{1} << 20;  // bytes from which on the system gets a block back as soon as it is freed
#endif
constexpr size_t kSlack = size_t{64} << 20;  // bytes of cached blocks that are never too many

struct Block {
  void* data;
  size_t capacity;
};

struct Pool {
  std::mutex mutex;
  std::vector<Block> free[kClasses];
  PoolStatistics statistics{0, 0, 0};
  size_t most = 0;   // bytes in use at once, ever
  size_t slack = 0;  // bytes that may be cached beyond that: more where blocks are freed again and again

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
  size_t wanted = nbytes < kAlignment ? kAlignment : nbytes;
  unsigned exponent = static_cast<unsigned>(std::bit_width(wanted - 1));
  size_t step = exponent > 9 ? size_t{1} << (exponent - 4) : kAlignment;
  size_t capacity = (wanted + step - 1) / step * step;
  size_t base = exponent ? size_t{1} << (exponent - 1) : 0;
  size_t offset = capacity > base ? (capacity - base + step - 1) / step : 0;
  *size_class = exponent * 8 + (offset > 8 ? 8 : offset);
  if (*size_class >= kClasses) *size_class = kClasses - 1;
  return capacity;
}

// Null where there is no memory.
void* system_allocate(size_t capacity) {
  if (capacity < kMapped) return std::aligned_alloc(kAlignment, capacity);
  void* block = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void system_free(void* block, size_t capacity) noexcept {
  if (capacity < kMapped) {
    std::free(block);
  } else {
    munmap(block, capacity);
  }
}

// What may be cached while `used` bytes are in use: in all little more than was ever in use at once, up to a quarter where
// blocks are freed to the system again and again. A program whose sizes change would hold the sum of all sizes else.
size_t allowed_beside(const Pool& p, size_t used) {
  const size_t most = std::max(p.most, used);
  return std::max(most + std::min(most / 16 + p.slack, most / 4) - used, kSlack);
}

// A cached block of at most twice the size, where one of the size would be too many; null if there is none.
void* take_larger(Pool& p, size_t size_class, size_t* capacity) {
  if (p.statistics.cached <= allowed_beside(p, p.statistics.in_use + *capacity)) return nullptr;
  for (size_t k = size_class + 1; k <= size_class + 8 && k < kClasses; ++k) {
    if (p.free[k].empty()) continue;
    const Block block = p.free[k].back();
    p.free[k].pop_back();
    *capacity = block.capacity;
    return block.data;
  }
  return nullptr;
}

// Before `capacity` more bytes come from the system: what is too many goes, the largest first.
void make_way(Pool& p, size_t capacity) {
  const size_t allowed = allowed_beside(p, p.statistics.in_use + capacity);
  for (size_t k = kClasses; k-- > 0 && p.statistics.cached > allowed;) {
    while (!p.free[k].empty() && p.statistics.cached > allowed) {
      const Block block = p.free[k].back();
      if (block.capacity < kMapped) return;
      p.free[k].pop_back();
      p.statistics.cached -= block.capacity;
      p.slack += block.capacity / 16;
      system_free(block.data, block.capacity);
    }
  }
}

}  // namespace

bool Buffer::shared_outside() const {
  if (exports > 0 || always_shared) return true;
  return owner != nullptr && (Py_REFCNT(owner) > 1 || (base != nullptr && Py_REFCNT(base) > 1));
}

void* pool_allocate(size_t nbytes, size_t* capacity) {
  size_t size_class;
  if (nbytes > (size_t{1} << 46)) throw OutOfMemory(nbytes);
  *capacity = round_capacity(nbytes, &size_class);
  Pool& p = pool();
  {
    std::lock_guard lock(p.mutex);
    auto& blocks = p.free[size_class];
    void* cached = nullptr;
    if (!blocks.empty()) {
      cached = blocks.back().data;
      blocks.pop_back();
    } else if (*capacity >= kMapped) {
      cached = take_larger(p, size_class, capacity);
    }
    if (cached) {
      p.statistics.cached -= *capacity;
      p.use(*capacity);
      return cached;
    }
    if (*capacity >= kMapped) make_way(p, *capacity);
  }
  void* block = system_allocate(*capacity);
  if (!block) {
    pool_trim();
    block = system_allocate(*capacity);
    if (!block) throw OutOfMemory(nbytes);
  }
  std::lock_guard lock(p.mutex);
  p.use(*capacity);
  return block;
}

void pool_release(void* data, size_t capacity) noexcept {
  size_t size_class;
  round_capacity(capacity, &size_class);
  Pool& p = pool();
  {
    std::lock_guard lock(p.mutex);
    p.statistics.in_use -= capacity;
    if (p.statistics.cached + capacity <= kMaxCached) {
      try {
        p.free[size_class].push_back(Block{data, capacity});
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
  std::lock_guard lock(p.mutex);
  for (auto& blocks : p.free) {
    for (const Block& block : blocks) system_free(block.data, block.capacity);
    blocks.clear();
  }
  p.statistics.cached = 0;
}

PoolStatistics pool_statistics() {
  std::lock_guard lock(pool().mutex);
  return pool().statistics;
}

void pool_reset_peak() {
  std::lock_guard lock(pool().mutex);
  pool().statistics.peak = pool().statistics.in_use;
}

Buffer* new_buffer(size_t nbytes) {
  auto* buffer = new Buffer();
  try {
    buffer->data = pool_allocate(nbytes, &buffer->capacity);
  } catch (...) {
    delete buffer;
    throw;
  }
  buffer->nbytes = nbytes;
  return buffer;
}

Buffer* foreign_buffer(void* data, size_t nbytes, PyObject* owner, PyObject* base, bool read_only, bool always_shared) {
  auto* buffer = new Buffer();
  buffer->data = data;
  buffer->nbytes = nbytes;
  buffer->owner = owner;
  buffer->base = base;
  buffer->read_only = read_only;
  buffer->always_shared = always_shared;
  Py_INCREF(owner);
  return buffer;
}

void destroy_buffer(Buffer* buffer) noexcept {
  if (buffer->owner) {
    Py_DECREF(buffer->owner);
  } else {
    pool_release(buffer->data, buffer->capacity);
  }
  delete buffer;
}

}  // namespace twofold
