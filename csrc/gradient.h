// Reverse mode over traces: walks entries backwards and appends one entry for each cotangent needed.
#pragma once

#include <utility>
#include <vector>

#include "recorder.h"

namespace twofold {

struct BackwardRequest {
  Value* root;
  Value* seed;       // the cotangent of root; null for ones
  bool retain;       // keep the graph for another pass
  bool create;       // the gradients are themselves differentiable
  uint32_t location; // of the call that asks for them
  bool accumulates;  // what arrives at leaves is added to `.grad`
  std::vector<Value*> targets;  // values that are not leaves but whose gradient is wanted
  std::vector<std::pair<Value*, Value*>> more = {};  // further roots and their seeds
};

struct FoundGradient {
  Watch watch;        // its slot, which hooks may leave without a tensor
  ValueRef gradient;  // null where `total` is there and nobody looks at the gradient of this pass alone
  ValueRef total;     // what `.grad` is with it, where the pass went on from what `.grad` held; else null
  ValueRef start;     // what that was
};

// Calls the hooks on *gradient, an owned tensor, which what they return replaces; false with a Python error set.
bool run_hooks(GradientSlot* slot, PyObject** gradient);
// False with a Python error set.
bool differentiate(Recorder& recorder, const BackwardRequest& request, std::vector<FoundGradient>* found);

}  // namespace twofold
