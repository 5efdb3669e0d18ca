// Aligned, pooled, reference-counted storage. Reference counts change under the interpreter lock only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

typedef struct _object PyObject;

namespace twofold {

constexpr size_t kAlignment = 64;

struct Buffer {
  int32_t references = 1;
  int32_t exports = 0;         // arrays outside that share this memory; those of parts count for the whole
  void* data = nullptr;
  size_t nbytes = 0;
  size_t capacity = 0;         // of the pool block; 0 for memory owned by somebody else, and for a part
  Buffer* whole = nullptr;     // of which this is a part, and holds it
  PyObject* owner = nullptr;   // keeps foreign memory alive
  PyObject* base = nullptr;    // whose memory the owner shows, if it is a view; kept alive by the owner
  bool read_only = false;
  bool always_shared = false;  // somebody outside whom no reference count shows may hold the memory

  // True while somebody outside may write to this memory.
  bool shared_outside() const;
};

// Raw blocks of the pool, 64-byte aligned; allocate throws std::bad_alloc.
void* pool_allocate(size_t nbytes, size_t* capacity);
void pool_release(void* data, size_t capacity) noexcept;
void pool_trim() noexcept;
struct PoolStatistics { size_t in_use, cached, peak; };
PoolStatistics pool_statistics();
void pool_reset_peak();  // the most that is in use is what is now

Buffer* new_buffer(size_t nbytes);
// A part of what a buffer of the pool holds, which stays as long as any of its parts.
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
