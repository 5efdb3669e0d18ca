// Calls that a debugger does not follow, and calls inside them that it follows again.
#pragma once

#include <nanobind/nanobind.h>

namespace twofold {

// call_untraced(function, *arguments), call_traced(function, *arguments)
nanobind::object call_untraced(nanobind::callable function, nanobind::args arguments, nanobind::kwargs named);
nanobind::object call_traced(nanobind::callable function, nanobind::args arguments, nanobind::kwargs named);
// Has debuggers follow this thread only after so many more (or fewer) ends of hiding; how many it takes now.
int hide_frames(int change);

}  // namespace twofold
