// Reverse mode over traces: visits entries in reverse order and records one call for each cotangent needed.
#pragma once

#include <utility>
#include <vector>

#include "recorder.h"

namespace twofold {

constexpr const char* kSecondPass =
    "backward: Trying to backward through the graph a second time, which the first pass used up. Pass retain_graph=True to the first call.";

struct BackwardRequest {
  Value* root;
  Value* seed;       // the cotangent of root; null for ones
  bool retain;       // keep the graph for another pass
  bool create;       // the gradients are themselves differentiable
  uint32_t location; // of the call that asks for them
  bool accumulates;  // gradients of leaves are accumulated into `.grad`
  std::vector<Value*> targets;  // values that are no leaves, but whose gradients are asked for
  std::vector<std::pair<Value*, Value*>> more = {};  // further roots and their seeds
};

struct FoundGradient {
  Watch watch;        // its slot, which hooks may leave without a tensor
  ValueRef gradient;  // null if `total` is set and no hook reads the gradient of this pass alone
  ValueRef total;     // the accumulated `.grad`, if the pass accumulates into it; else null
  ValueRef start;     // the initial `.grad`
  bool sparse;        // whether `.grad` is shown by its rows, if it was before or was not set

  // Whether all calls that read the leaf have said that there is no gradient.
  bool is_undefined() const { return !gradient && !total; }
};

// Calls the hooks on *gradient, an owned tensor, and replaces it by what they return; null after NotImplemented for a value that is
// no leaf: it has no cotangent. None is passed where there is none already, and then may stay. False with a Python error set.
bool run_hooks(GradientSlot* slot, PyObject** gradient);
// The value of a tensor with the graph of the value whose hooks run, so that what is computed of it has gradients there; what is recorded until the hooks end
// counts as the gradient of its call.
PyObject* at_hooked_position(PyObject* tensor);
// Computes those of the values that belong to another trace than the open one: to that of another thread, or to one that another
// thread is running. While this thread waits for one, another thread may run the open trace. False with a Python error set.
bool compute_elsewhere(Recorder& recorder, const std::vector<ValueRef>& values);
// False with a Python error set.
bool differentiate(Recorder& recorder, const BackwardRequest& request, std::vector<FoundGradient>* found);
// Accumulates into `.grad` what was found, after the hooks; of values that are no leaves with retain_grad, or if they are `asked`
// for. `create`: gradients keep their graph. False with a Python error set.
bool gather_all(std::vector<FoundGradient>& found, bool create, bool asked);

}  // namespace twofold
