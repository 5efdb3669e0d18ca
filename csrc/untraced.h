// Calls that are hidden from debuggers, and nested calls that are traced again.
#pragma once

#include <nanobind/nanobind.h>

namespace twofold {

// call_untraced(function, *arguments), call_traced(function, *arguments)
nanobind::object call_untraced(nanobind::callable function, nanobind::args arguments, nanobind::kwargs named);
nanobind::object call_traced(nanobind::callable function, nanobind::args arguments, nanobind::kwargs named);
// Changes the nesting depth of hidden calls of this thread; returns the depth.
int hide_frames(int change);

}  // namespace twofold
