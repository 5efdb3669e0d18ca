// A reference to an interned object, which keeps it alive. Under the GIL only.
#pragma once

#include <cstdint>
#include <utility>

namespace twofold {

// T has `int32_t references`. The table that owns the object frees it some time after the last reference has gone.
template <class T>
class Held {
 public:
  Held() = default;
  Held(T* object) : object_(object) { if (object_) ++object_->references; }
  Held(const Held& other) : Held(other.object_) {}
  Held(Held&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Held& operator=(Held other) noexcept { std::swap(object_, other.object_); return *this; }
  ~Held() { if (object_) --object_->references; }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  operator T*() const& { return object_; }
  operator T*() const&& = delete;  // the temporary reference would dangle

 private:
  T* object_ = nullptr;
};

}  // namespace twofold
