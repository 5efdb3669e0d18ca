// Executes a BatchPlan, launch by launch.
#pragma once

#include <vector>

#include "batch_plan.h"
#include "buffer.h"
#include "interrupts.h"

namespace twofold {

// Outputs: filled with new buffers, one for each output of the trace; those behind the first `apart` ones may be slices of
// one buffer. False with a Python error set if programs could not be made; throws what a kernel throws.
bool run_batches(const CanonicalTrace& canonical, const BatchPlan& plan, void* const* inputs, size_t apart,
                 std::vector<BufferRef>& outputs, Interrupts& interrupts);

}  // namespace twofold
