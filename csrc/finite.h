// Checks whether values are finite.
#pragma once

#include <cstdint>

#include "type.h"

namespace twofold {

enum class Finite : uint8_t { kAll, kInfinite, kNan };  // kInfinite: some are infinite, and none is NaN

// The return value of a kernel that reports stored values that are not finite, see twofold.compiler.lower.memory; no error.
inline bool is_finite_code(int64_t code) { return code == INT64_MIN + 1 || code == INT64_MIN + 2; }
inline Finite finite_of(int64_t code) { return is_finite_code(code) ? static_cast<Finite>(code - INT64_MIN) : Finite::kAll; }

// The combined return value of two parts of a kernel: an error, or else the worse of the two.
inline int64_t worse(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return a | b;
  if (is_finite_code(a) != is_finite_code(b)) return is_finite_code(a) ? b : a;
  return a > b ? a : b;
}

// Dtypes without NaN have finite values only.
Finite finite_in(const Type* type, const void* data);

}  // namespace twofold
