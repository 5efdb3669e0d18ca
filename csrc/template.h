// Templates: plans for symbolic sizes. Op instances that differ in integers only are a
// family; from its second member on Python makes a template, which is instantiated here for further members.
#pragma once

#include <Python.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nested.h"
#include "op_instance.h"
#include "size_program.h"

namespace twofold {

// A program without its integers: parameters, work and memory.
class ProgramSteps {
 public:
  // From (steps, outputs, buffers, donations, further work, whether it tells what is finite); false with a Python error set.
  bool read(PyObject* encoded);
  // The program with integers from `next` on, which is advanced; null if a host function cannot be made.
  ProgramRef with_numbers(const int64_t*& next) const;
  size_t memory() const;

 private:
  // The nested programs of a step.
  struct Inside {
    NestedForm form;
    std::vector<ProgramSteps> programs;
    std::vector<int32_t> first_labels;
  };
  struct Step {
    Kernel kernel;
    uint32_t first_slot, slots, params;
    int32_t label;
    std::shared_ptr<const Inside> inside;
    std::shared_ptr<PyObject> host;  // makes the host function from so many integers, or null
    size_t host_numbers;
  };
  bool read_step(PyObject* item);
  bool read_inside(PyObject* encoded, Step& step);
  static bool read_host(PyObject* encoded, Step& step);

  std::shared_ptr<CodeOwners> code_ = std::make_shared<CodeOwners>();
  std::vector<Step> steps_;
  std::vector<BufferSlot> slots_;  // those of the arena hold the number of the buffer
  size_t outputs_ = 0, buffers_ = 0;
  int64_t further_work_ = 0;
  bool tells_finite_ = false;
  std::vector<std::pair<int32_t, int32_t>> donations_;
};

// A program whose integers are symbolic expressions.
class ProgramTemplate {
 public:
  // From (sizes, steps), see twofold.compiler.templates; false with a Python error set.
  bool read(PyObject* encoded);
  // The program for these sizes; null if a guard does not hold.
  ProgramRef instantiate(const int64_t* values) const;
  size_t memory() const { return sizes_.memory() + steps_.memory(); }

 private:
  SizeProgram sizes_;
  ProgramSteps steps_;
};

struct GradientTemplate;

// For tests and for prebuilt templates: everything, or all sizes of operands, is symbolic at first sight.
enum class Templates : uint8_t { kOff, kSecondSize, kAtOnce, kSizesAtOnce };
extern Templates template_mode;

// Plans, each a shared pointer, with different guards, most recently used first. More plans are made as long as
// earlier ones are hit: each class of sizes of each layer of a network has its own.
template <class Plan>
struct Plans {
  std::vector<Plan> list;
  size_t uses = 0, attempts = 0;

  bool may_add() const { return template_mode >= Templates::kAtOnce || attempts < 8 + uses / 4; }
  void add(Plan plan) { list.insert(list.begin(), std::move(plan)); }
  // The first result of `make` over the plans that is not null.
  template <class Make>
  auto find(Make make) -> decltype(make(list.front())) {
    for (size_t k = 0; k < list.size(); ++k) {
      const Plan plan = list[k];  // `make` may run Python code, and another thread, that adds to the list
      auto found = make(plan);
      if (!found) continue;
      ++uses;
      const auto at = std::find(list.begin(), list.end(), plan);
      if (at != list.end()) std::rotate(list.begin(), at, at + 1);
      return found;
    }
    return {};
  }
};

// A template of a family. Everything but the result type is made on demand.
struct Template {
  explicit Template(PyObject* owned) : python(owned) {}
  ~Template() { Py_XDECREF(python); }
  Template(const Template&) = delete;
  size_t memory() const;

  PyObject* const python;  // twofold.compiler.templates.Template
  bool kept = false;       // it was not made in this process; as of any first size, what is not kept with it is made for that size alone
  int8_t is_cheap = -1;    // -1 until Python has been asked
  SizeProgram result;      // the shape, and of a movement its offset and step
  std::vector<std::pair<uint32_t, int64_t>> fixed;  // numbers that are part of the plan, by position
  uint8_t dtype = 0;
  bool differentiable = false;
  Traits traits;  // without the numbers of a movement
  std::unordered_map<uint64_t, Plans<std::shared_ptr<const GradientTemplate>>> gradients;  // by the mask of inputs
  Plans<std::shared_ptr<const ProgramTemplate>> programs;
};

struct GradientTemplate {
  struct Piece {
    size_t index = 0;  // of the input, or behind them of the shared value
    Operation* operation = nullptr;
    std::shared_ptr<PyObject> attributes;  // of the example; their integers are replaced in order
    size_t numbers = 0;                    // those of the attributes, then as of a result
    std::vector<int32_t> used;
    Form form;
    std::shared_ptr<Template> made;
  };

  SizeProgram numbers;  // of all gradients
  std::vector<Piece> pieces;
};

// Attributes with integers replaced in order; a new reference, null with a Python error set.
PyObject* with_numbers(PyObject* value, const int64_t*& next);
// The op instance of a call by a template, which Python may make now; null without an error if there is none.
OpInstanceRef op_instance_by_template(Operation* op, Attributes* attributes, Type* const* inputs, size_t count);
// Instantiates gradients by template; false if there is none, or with a Python error set.
bool gradients_by_template(GradientPlan& plan, OpInstance* instance, PyObject* inputs);
// The program by template; null, perhaps with a Python error set.
ProgramRef program_by_template(OpInstance* instance);

struct TemplateCounts {
  size_t families, made, programs, uses, refused;
};
TemplateCounts template_counts();

}  // namespace twofold
