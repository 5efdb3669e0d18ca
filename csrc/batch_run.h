// Runs a trace launch by launch, see BatchPlan.
#pragma once

#include <vector>

#include "batch_plan.h"
#include "buffer.h"
#include "interrupts.h"

namespace twofold {

// Outputs: filled with new buffers, one for each output of the trace; those behind the first `apart` ones may be parts of
// one. False with a Python error set where programs could not be made; throws what a kernel throws.
bool run_batches(const CanonicalTrace& canonical, const BatchPlan& plan, void* const* inputs, size_t apart,
                 std::vector<BufferRef>& outputs, Interrupts& interrupts);

}  // namespace twofold
