#include <Python.h>

#include "buffer.h"

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

struct Pool {
  std::mutex mutex;
  std::vector<void*> free[kClasses];
  PoolStatistics statistics{0, 0, 0};
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
    if (!blocks.empty()) {
      void* block = blocks.back();
      blocks.pop_back();
      p.statistics.cached -= *capacity;
      p.statistics.in_use += *capacity;
      if (p.statistics.in_use > p.statistics.peak) p.statistics.peak = p.statistics.in_use;
      return block;
    }
  }
  void* block = std::aligned_alloc(kAlignment, *capacity);
  if (!block) {
    pool_trim();
    block = std::aligned_alloc(kAlignment, *capacity);
    if (!block) throw OutOfMemory(nbytes);
  }
  std::lock_guard lock(p.mutex);
  p.statistics.in_use += *capacity;
  if (p.statistics.in_use > p.statistics.peak) p.statistics.peak = p.statistics.in_use;
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
        p.free[size_class].push_back(data);
        p.statistics.cached += capacity;
        return;
      } catch (...) {
      }
    }
  }
  std::free(data);
}

void pool_trim() noexcept {
  Pool& p = pool();
  std::lock_guard lock(p.mutex);
  for (auto& blocks : p.free) {
    for (void* block : blocks) std::free(block);
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
