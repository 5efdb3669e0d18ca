// The Python module: programs, their templates, and nested programs.
#include "module_programs.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>

#include "executable.h"
#include "nested.h"
#include "template.h"
#include "vector_caster.h"

namespace nb = nanobind;

namespace twofold {
namespace {

struct PyTemplate {
  ProgramTemplate program;
};

struct PyNested {
  std::shared_ptr<const Nested> nested;
};

ProgramRef make_program(nb::list instructions, std::vector<int64_t> output_nbytes, const std::vector<int64_t>& buffer_sizes, bool reuse_memory,
                        nb::object labels, int64_t further_work, std::vector<std::pair<int32_t, int32_t>> donations, bool tells_finite) {
  auto program = std::make_shared<Program>();
  program->output_nbytes = std::move(output_nbytes);
  program->total_work = further_work;
  program->donations = std::move(donations);
  program->tells_finite = tells_finite;
  for (nb::handle item : instructions) {
    auto [address, buffers, params, work, grain, label, host] =
        nb::cast<std::tuple<nb::object, nb::tuple, nb::object, int64_t, int64_t, int32_t, nb::object>>(item);
    Instruction made{};
    made.kernel = reinterpret_cast<Kernel>(nb::cast<uint64_t>(address));
    program->code->add(address.ptr());
    made.first_slot = static_cast<uint32_t>(program->slots.size());
    made.slots = static_cast<uint32_t>(buffers.size());
    made.first_param = static_cast<uint32_t>(program->params.size());
    made.work = work;
    made.grain = std::max<int64_t>(1, grain);
    made.label = label;
    if (PyNested* inner = nullptr; nb::try_cast<PyNested*>(host, inner) && inner) {
      if (inner->nested->slots() != buffers.size()) throw nb::value_error("a nested instruction has the wrong number of buffers");
      made.nested = inner->nested.get();
      program->nested.push_back(inner->nested);
      program->has_host |= made.nested->has_host();
    } else {
      made.host = host.is_none() ? nullptr : host.release().ptr();
      program->has_host |= made.host != nullptr;
    }
    if (!made.kernel && !made.host && !made.nested) {
      throw nb::value_error("an instruction has neither machine code, nor a host function, nor a program inside");
    }
    for (nb::handle slot : buffers) {
      auto [kind, index] = nb::cast<std::tuple<int, int64_t>>(slot);
      program->slots.push_back(BufferSlot{static_cast<uint8_t>(kind), index});
    }
    const auto numbers = nb::cast<std::vector<int64_t>>(params);
    program->params.insert(program->params.end(), numbers.begin(), numbers.end());
    program->instructions.push_back(made);
  }
  program->labels = labels.release().ptr();
  program->settle(buffer_sizes, reuse_memory);
  return program;
}

PyNested make_nested(const std::vector<PyProgram*>& programs, const std::vector<int32_t>& first_labels, nb::tuple form,
                     const std::vector<int64_t>& numbers) {
  NestedForm own;
  if (!own.read(form.ptr())) throw nb::python_error();
  if (own.numbers() != numbers.size()) throw nb::value_error("a nested instruction has the wrong number of numbers");
  std::vector<Part> parts;
  for (size_t k = 0; k < programs.size(); ++k) parts.push_back(Part{programs[k]->program, first_labels.at(k)});
  return PyNested{own.made(std::move(parts), numbers.data())};
}

// Runs a program on memory given by address.
void run_program(const PyProgram& self, const std::vector<uint64_t>& inputs, const std::vector<uint64_t>& outputs) {
  std::vector<void*> from, to;
  for (uint64_t address : inputs) from.push_back(reinterpret_cast<void*>(address));
  for (uint64_t address : outputs) to.push_back(reinterpret_cast<void*>(address));
  try {
    Interrupts interrupts;
    self.program->run(from.data(), to.data(), interrupts);
  } catch (const KernelError& error) {
    raise_kernel_error(*self.program, error, {});
    throw nb::python_error();
  } catch (const PythonError&) {
    throw nb::python_error();
  }
}

}  // namespace

void bind_programs(nb::module_& m) {
  nb::class_<PyProgram>(m, "Program")
      .def(
          "__init__",
          [](PyProgram* self, nb::list instructions, std::vector<int64_t> output_nbytes, const std::vector<int64_t>& buffer_sizes,
             bool reuse_memory, nb::object labels, int64_t further_work, std::vector<std::pair<int32_t, int32_t>> donations,
             bool tells_finite) {
            new (self) PyProgram{make_program(instructions, std::move(output_nbytes), buffer_sizes, reuse_memory, labels, further_work,
                                              std::move(donations), tells_finite)};
          },
          nb::arg("instructions"), nb::arg("output_nbytes"), nb::arg("buffer_sizes"), nb::arg("reuse_memory"), nb::arg("labels").none(),
          nb::arg("further_work"), nb::arg("donations") = std::vector<std::pair<int32_t, int32_t>>(), nb::arg("tells_finite") = false)
      .def_prop_ro("instruction_count", [](const PyProgram& self) { return self.program->instructions.size(); })
      .def_prop_ro("arena_bytes", [](const PyProgram& self) { return self.program->arena_bytes; })
      .def("run", &run_program, nb::arg("inputs"), nb::arg("outputs"));
  nb::class_<PyTemplate>(m, "ProgramTemplate")
      .def("__init__",
           [](PyTemplate* self, nb::object encoded) {
             new (self) PyTemplate();
             if (!self->program.read(encoded.ptr())) throw nb::python_error();
           },
           nb::arg("encoded"))
      .def(
          "instantiate",
          [](const PyTemplate& self, const std::vector<int64_t>& values, nb::object labels) -> std::optional<PyProgram> {
            ProgramRef found = self.program.instantiate(values.data());
            if (!found) return std::nullopt;
            found->labels = labels.is_none() ? nullptr : labels.release().ptr();
            return PyProgram{std::move(found)};
          },
          nb::arg("values"), nb::arg("labels").none());
  nb::class_<PyNested>(m, "Nested").def_prop_ro("scratch_bytes", [](const PyNested& self) { return self.nested->scratch_bytes(); });
  m.def("nested", &make_nested);
}

}  // namespace twofold
