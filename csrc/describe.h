// Descriptions of traces as Python objects, for the compiler and for tools; and the tape, a list of all that a thread runs.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "recorder.h"

namespace twofold {

// (input types, [(op instance or None, refs, op, attrs, gradient mask, operand types)], outputs); a call that a template made has
// no op instance until it is asked for, and entries of one op instance share the list of its types.
nanobind::tuple describe_trace(const Trace& trace, const std::vector<Ref>& outputs);
// Sets the list to which the thread adds what it runs, or None. Returns the list before.
nanobind::object set_tape(nanobind::object list);
// Sets whether a debugger steps through what the thread records: with whole chains of callers, and each call of a backward
// pass that has a cotangent. Returns what was set before.
bool set_stepped(bool is_stepped);

}  // namespace twofold
