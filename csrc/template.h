// Plans with symbolic sizes. Calls of one operation with attributes and input types that differ in numbers alone are a
// family; from its second member on, Python plans it for symbols, and further members only evaluate that plan here.
#pragma once

#include <Python.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nested.h"
#include "signature.h"
#include "size_program.h"

namespace twofold {

// A program but for its numbers: parameters, work and memory.
class ProgramSteps {
 public:
  // From (steps, outputs, buffers, donations, further work, whether it tells what is finite); false with a Python error set.
  bool read(PyObject* encoded);
  // The program with numbers from `next` on, which is moved behind them; null where a function of the host is not made.
  ProgramRef with_numbers(const int64_t*& next) const;
  size_t memory() const;

 private:
  // Programs that a step runs in place of a kernel.
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
    std::shared_ptr<PyObject> host;  // makes the function of the host for so many numbers, or null
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

// A program whose numbers are expressions over sizes.
class ProgramTemplate {
 public:
  // From (sizes, steps), see twofold.compiler.templates; false with a Python error set.
  bool read(PyObject* encoded);
  // The program for these sizes; null where a guard does not hold.
  ProgramRef instantiate(const int64_t* values) const;
  size_t memory() const { return sizes_.memory() + steps_.memory(); }

 private:
  SizeProgram sizes_;
  ProgramSteps steps_;
};

struct GradientTemplate;

// For tests and for what comes with the package, everything is symbolic when first met, or all sizes of operands are.
enum class Templates : uint8_t { kOff, kSecondSize, kAtOnce, kSizesAtOnce };
extern Templates template_mode;

// Plans of one thing for different guards, the last one used in front. New ones are worth their while as long as
// earlier ones are used.
template <class Plan>
struct Plans {
  std::vector<Plan> list;
  size_t uses = 0, attempts = 0;

  bool may_add() const { return template_mode >= Templates::kAtOnce || attempts < 4 + uses / 8; }
  void add(Plan plan) { list.insert(list.begin(), std::move(plan)); }
  // What `make` gives of the first plan of which it gives something.
  template <class Make>
  auto find(Make make) -> decltype(make(list.front())) {
    for (auto plan = list.begin(); plan != list.end(); ++plan) {
      if (auto found = make(*plan)) {
        ++uses;
        std::rotate(list.begin(), plan, plan + 1);
        return found;
      }
    }
    return {};
  }
};

// What is known of all members of a family that meet the guards. Everything but the result type is made when asked for.
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
  std::unordered_map<uint64_t, Plans<std::shared_ptr<const GradientTemplate>>> gradients;  // by what is wanted
  Plans<ProgramTemplate> programs;
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

  SizeProgram numbers;  // of all pieces
  std::vector<Piece> pieces;
};

// The attributes of an example with its integers replaced in order; a new reference, null with a Python error set.
PyObject* with_numbers(PyObject* value, const int64_t*& next);
// The signature of a call by a template, one that Python makes now if it is time; null without an error if there is none.
SignatureRef signature_by_template(Operation* op, Attributes* attributes, Type* const* inputs, size_t count);
// Fills in gradients by template; false if there is none for them, or with a Python error set.
bool gradients_by_template(GradientPlan& plan, Signature* signature, PyObject* inputs);
// The program by template; null, perhaps with a Python error set.
ProgramRef program_by_template(Signature* signature);

struct TemplateCounts {
  size_t families, made, programs, uses, refused;
};
TemplateCounts template_counts();

}  // namespace twofold
