// Whether values are finite: one look over the memory of a result.
#pragma once

#include <cstdint>

#include "type.h"

namespace twofold {

enum class Finite : uint8_t { kAll, kInfinite, kNan };  // kInfinite: some are infinite, and none is NaN

// Dtypes without NaN have finite values only.
Finite finite_in(const Type* type, const void* data);

}  // namespace twofold
