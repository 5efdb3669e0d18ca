// Python numbers among the operands of calls that may be batched.
#pragma once

#include <cstdint>
#include <vector>

#include "location.h"
#include "trace.h"

namespace twofold {

// By leaf: the first one that it is one operand with, or itself. Numbers of one type and value are, but for those that differ
// from call to call of one line, such as the class of a sample: whatever they are, these calls are batched. `leaves` holds
// the memory of each leaf.
std::vector<uint32_t> united_numbers(const Trace& trace, void* const* leaves, RunProvenance provenance);

}  // namespace twofold
