// Aligned, pooled, reference-counted storage. Reference counts change under the GIL only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

typedef struct _object PyObject;

namespace twofold {

constexpr size_t kAlignment = 64;

struct Buffer {
  int32_t references = 1;
  int32_t exports = 0;         // exported arrays that share this memory; those of slices count for the base
  uint32_t handovers = 0;      // how often it was handed out to code that may write to it
  void* data = nullptr;
  size_t nbytes = 0;
  size_t capacity = 0;         // of the pool block; 0 for foreign memory, and for a slice
  Buffer* whole = nullptr;     // the buffer of which this is a slice, which holds a reference to it
  PyObject* owner = nullptr;   // keeps foreign memory alive
  PyObject* base = nullptr;    // the object whose memory the owner is a view of; kept alive by the owner
  bool read_only = false;
  bool always_shared = false;  // foreign code without a reference count may hold the memory
  bool is_pointed_at = false;  // its address was handed out, so anybody may write to it at any time
  bool has_kept = false;       // results are kept that are computed of what it holds
  bool has_copy = false;       // it was copied, and the copy may be kept
  uint32_t seen_handovers = 0;  // when `content_number` was given
  uint64_t content_number = 0;  // 0: not asked for since it was written to

  // True while foreign code may write to this memory.
  bool shared_outside() const;
  uint32_t handover_count() const { return whole ? whole->handovers : handovers; }
  // A number that stands for what the memory holds: it changes whenever that may have changed. 0 if nobody would know.
  uint64_t content();
  // Whoever writes to memory that a value has had says so.
  void note_overwritten() {
    if (has_kept) forget_kept();
    content_number = 0;
  }
  void forget_kept() noexcept;
};

// Raw blocks of the pool, 64-byte aligned; allocate throws std::bad_alloc.
void* pool_allocate(size_t nbytes, size_t* capacity);
void pool_release(void* data, size_t capacity) noexcept;
void pool_trim() noexcept;
struct PoolStatistics { size_t in_use, cached, peak; };
PoolStatistics pool_statistics();
void pool_reset_peak();  // resets the peak to what is in use now

// A block of the pool for one owner, with or without the GIL. Null for no bytes.
class PoolMemory {
 public:
  explicit PoolMemory(size_t nbytes = 0) : size_(nbytes) {
    if (nbytes > 0) data_ = pool_allocate(size_, &capacity_);
  }
  PoolMemory(PoolMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), capacity_(std::exchange(other.capacity_, 0)) {}
  PoolMemory& operator=(PoolMemory other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~PoolMemory() { if (data_) pool_release(data_, capacity_); }
  char* data() const { return static_cast<char*>(data_); }
  size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

Buffer* new_buffer(size_t nbytes);
// A slice of a buffer of the pool, which lives as long as any of its slices.
Buffer* part_of_buffer(Buffer* whole, void* data, size_t nbytes);
Buffer* foreign_buffer(void* data, size_t nbytes, PyObject* owner, PyObject* base, bool read_only, bool always_shared);
void destroy_buffer(Buffer* buffer) noexcept;

class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* owned) : buffer_(owned) {}
  BufferRef(const BufferRef& other) : buffer_(other.buffer_) { if (buffer_) ++buffer_->references; }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept { std::swap(buffer_, other.buffer_); return *this; }
  ~BufferRef() { if (buffer_ && --buffer_->references == 0) destroy_buffer(buffer_); }
  Buffer* get() const { return buffer_; }
  Buffer* operator->() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }

 private:
  Buffer* buffer_ = nullptr;
};

}  // namespace twofold
