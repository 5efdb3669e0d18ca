// Runs a trace launch by launch, see BatchPlan.
#pragma once

#include <vector>

#include "batch_plan.h"
#include "buffer.h"
#include "interrupts.h"

namespace twofold {

// Outputs: filled with new buffers, one for each output of the trace. False with a Python error set where programs could
// not be made; throws what a kernel throws.
bool run_batches(const CanonicalTrace& canonical, const BatchPlan& plan, void* const* inputs, std::vector<BufferRef>& outputs,
                 Interrupts& interrupts);

}  // namespace twofold
