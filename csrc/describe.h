// Traces as Python objects, for the compiler and for tools; and the tape, on which a thread keeps all that it runs.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "recorder.h"

namespace twofold {

// (leaf types, [(graph or None, refs, op, attrs, gradient mask, input types)], outputs); what a template made has
// no graph until it is asked for, and entries of one signature share the list of its types.
nanobind::tuple describe_trace(const Trace& trace, const std::vector<Ref>& outputs);
// From now on the thread keeps what it runs in a list, or no longer (None). Returns the list before.
nanobind::object set_tape(nanobind::object list);

}  // namespace twofold
