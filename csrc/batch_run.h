// Executes a BatchPlan, launch by launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "batch_plan.h"
#include "buffer.h"
#include "interrupts.h"

namespace twofold {

// A run whose programs are found and whose memory is allocated. Made, finished and destroyed under the GIL.
class BatchRun {
 public:
  // Null with a Python error set if programs could not be made; may throw std::bad_alloc.
  static std::unique_ptr<BatchRun> make(const CanonicalTrace& canonical, std::shared_ptr<const BatchPlan> plan, void* const* inputs);
  virtual ~BatchRun() = default;

  // Whether it calls functions of the host.
  virtual bool needs_python() const = 0;
  // Estimated nanoseconds of its kernels.
  virtual int64_t work() const = 0;
  // Without the GIL, unless it needs Python; throws what a kernel throws. `done`: how many launches have ended.
  virtual void execute(Interrupts& interrupts, std::atomic<uint32_t>* done = nullptr) = 0;
  // How many launches have ended when an output is there, and where that is.
  virtual std::pair<uint32_t, const void*> location(size_t output) const = 0;
  // Outputs: filled with new buffers, one for each output of the trace; those behind the first `apart` ones may be slices of one buffer.
  virtual void finish(size_t apart, std::vector<BufferRef>& outputs) = 0;
};

}  // namespace twofold
