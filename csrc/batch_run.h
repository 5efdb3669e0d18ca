// Runs a trace launch by launch, see BatchPlan.
#pragma once

#include <vector>

#include "batch_plan.h"
#include "buffer.h"
#include "interrupts.h"
#include "run_behind.h"

namespace twofold {

// Outputs: filled with new buffers, one for each output of the trace; those behind the first `apart` ones may be parts of
// one. With `behind` they may be still to come: then that is set to what makes them, which needs the trace and the inputs until
// it has been concluded. False with a Python error set where programs could not be made; throws what a kernel throws.
bool run_batches(const CanonicalTrace& canonical, const std::shared_ptr<const BatchPlan>& plan, void* const* inputs, size_t apart,
                 std::vector<BufferRef>& outputs, Interrupts& interrupts, std::shared_ptr<RunBehind>* behind);

}  // namespace twofold
