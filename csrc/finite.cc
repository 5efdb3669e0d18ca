#include "finite.h"

#include <algorithm>
#include <cstring>

namespace twofold {
namespace {

// The maximum of magnitudes as bits: infinity is above all finite values, NaN above infinity.
template <class Bits, class Vector>
[[gnu::always_inline]] inline Bits largest(const Bits* data, int64_t count, Bits magnitude) {
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(Bits);
  Vector most[4] = {};
  const Vector mask = Vector{} + magnitude;
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    for (int k = 0; k < 4; ++k) {
      Vector x;
      std::memcpy(&x, data + i + k * kLanes, sizeof x);
      x &= mask;
      most[k] = x > most[k] ? x : most[k];
    }
  }
  Bits found = 0;
  for (const Vector& part : most) {
    for (int64_t k = 0; k < kLanes; ++k) found = std::max(found, part[k]);
  }
  for (; i < count; ++i) found = std::max(found, static_cast<Bits>(data[i] & magnitude));
  return found;
}

template <class Bits>
Finite judged(Bits largest, Bits infinity) {
  return largest < infinity ? Finite::kAll : largest == infinity ? Finite::kInfinite : Finite::kNan;
}

typedef int16_t Halves [[gnu::vector_size(32)]];
typedef int32_t Words [[gnu::vector_size(32)]];
typedef int64_t Longs [[gnu::vector_size(32)]];

#if defined(__x86_64__) && defined(__ELF__) && !defined(__SANITIZE_ADDRESS__)
#define TWOFOLD_CLONES [[gnu::target_clones("avx2", "default")]]
#else
#define TWOFOLD_CLONES
#endif

TWOFOLD_CLONES int16_t largest16(const int16_t* data, int64_t count) { return largest<int16_t, Halves>(data, count, 0x7FFF); }
TWOFOLD_CLONES int32_t largest32(const int32_t* data, int64_t count) { return largest<int32_t, Words>(data, count, 0x7FFFFFFF); }
TWOFOLD_CLONES int64_t largest64(const int64_t* data, int64_t count) { return largest<int64_t, Longs>(data, count, INT64_MAX); }

}  // namespace

Finite finite_in(const Type* type, const void* data) {
  switch (type->dtype) {
    case kFloat16: return judged<int16_t>(largest16(static_cast<const int16_t*>(data), type->size), 0x7C00);
    case kBFloat16: return judged<int16_t>(largest16(static_cast<const int16_t*>(data), type->size), 0x7F80);
    case kFloat32: return judged<int32_t>(largest32(static_cast<const int32_t*>(data), type->size), 0x7F800000);
    case kComplex64: return judged<int32_t>(largest32(static_cast<const int32_t*>(data), 2 * type->size), 0x7F800000);
    case kFloat64: return judged<int64_t>(largest64(static_cast<const int64_t*>(data), type->size), int64_t{0x7FF} << 52);
    case kComplex128: return judged<int64_t>(largest64(static_cast<const int64_t*>(data), 2 * type->size), int64_t{0x7FF} << 52);
    default: return Finite::kAll;
  }
}

}  // namespace twofold
