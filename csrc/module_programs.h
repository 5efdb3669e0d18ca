// Programs as objects of the Python module.
#pragma once

#include <nanobind/nanobind.h>

#include "program.h"

namespace twofold {

struct PyProgram {
  ProgramRef program;
};

void bind_programs(nanobind::module_& m);

}  // namespace twofold
