// Op instances: operations (for the core a name and a Python object) with attributes on operand types, and the memo of
// their result type, gradients and unfused program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "held.h"
#include "program.h"
#include "type.h"

typedef struct _object PyObject;

namespace twofold {

// Which dtype an operation chooses for its floating operands inside an autocast region.
enum class AutocastPolicy : uint8_t { kNone, kLower, kFloat32, kWidest, kOwn };

struct Operation {
  PyObject* python;  // the entry, twofold.ir.op.Op
  std::string name;
  uint32_t id;
  bool is_view;
  bool may_copy;  // of a view: it copies if strides cannot express the result (never of a dense input)
  bool is_gradient;  // what a backward pass records for a call
  bool reads_views;  // gradients read its operands as through views of them
  AutocastPolicy autocast;
};

// Attributes by value; equal attributes are one pointer.
struct Attributes {
  int32_t references = 0;
  uint32_t id;
  uint64_t used;                 // when they were last looked up
  PyObject* tuple;               // owned
  std::string bytes;
  std::string skeleton;          // equal for attributes that differ in integers only
  uint64_t skeleton_hash;
  std::vector<int64_t> numbers;  // the integers in order
  bool symbolic = false;         // some integers are symbols, of a graph with symbolic sizes
};
using AttributesRef = Held<Attributes>;

class BatchFamily;
struct OpInstance;
using OpInstanceRef = Held<OpInstance>;
struct Template;

// How gradients of several calls are summed: the kinds of twofold.transforms.gradient_forms.
struct Form {
  enum Kind : int32_t { kPlain, kProduct, kTranspose, kTable, kRows, kChain, kIdentity, kBlock };
  static constexpr int32_t kComputed = -3;
  int32_t kind = kPlain;
  int32_t left = 0, right = 0;  // of a product its factors, of a table the index and the rows, as in Gradient::used; of a
                                // sum of rows the number of axes of a row, and the rows, kComputed if the gradient computes them
  int sparse = 0;  // whether `.grad` of a leaf to which only such gradients go is shown by its rows

  bool read(PyObject* tuple);  // false with a Python error set
};

// The call of the cotangent of one input, or of a common subexpression of several.
struct Gradient {
  struct Release {
    void operator()(PyObject* object) const;
  };
  OpInstanceRef instance;     // null where no gradient flows; held from one side only: the gradient has longer attributes
  std::vector<int32_t> used;  // what its inputs are: -1 the cotangent, -2 the output, k >= 0 input k, then the shared values
  std::vector<int32_t> reads;  // the same, sorted, with the operands of shared values in place of these
  Form form;
  std::unique_ptr<PyObject, Release> error;  // of one that is not implemented: raised on use
};

// The gradients of a call with respect to a set of inputs, by input, and behind them their common subexpressions.
struct GradientPlan {
  uint64_t wanted = 0;  // as Entry::gradient_mask
  std::vector<Gradient> gradients;
  mutable int8_t reads_values = -1;  // whether they read values beside the cotangent; -1 if not computed yet

  const Gradient* at(size_t index) const;  // null with a Python error set
};

// Data movement of a call that computes nothing: its result is a slice of one operand, or the concatenation of its
// operands.
struct Movement {
  std::vector<uint32_t> operands;
  bool joins = false;
  int32_t number = -1;  // the operand that is the index of a slice, in units of `step` bytes
  int64_t offset = 0;   // of a part, in bytes
  int64_t step = 0;
};

// Traits of a call, see twofold.transforms.derived.
struct Traits {
  bool defers = false;  // its result is deferred: its operands are kept instead
  bool checks = false;  // it runs even if its result is dead, as it reports invalid values
  std::optional<Movement> movement;

  bool read(PyObject* defers, PyObject* checks, PyObject* movement);  // false with a Python error set
};

struct OpInstance {
  ~OpInstance();
  size_t memory() const;

  int32_t references = 0;
  uint32_t id;
  uint64_t last_use;  // when it was last looked up
  Operation* operation;
  AttributesRef attributes;
  std::vector<Type*> inputs;
  Type* output = nullptr;
  PyObject* graph = nullptr;  // op instance of Python; null with unknown sizes, and by template until asked for
  std::shared_ptr<Template> plan;  // the template that made it; null if Python made it
  std::shared_ptr<const std::vector<int64_t>> values;  // the integers for which the template was instantiated
  bool differentiable = false;
  bool is_uniform = false;  // its inputs have the same floating dtype, see same_floats
  std::unique_ptr<const Traits> traits;  // null until they were asked for
  int8_t is_cheap = -1;  // -1 if not computed yet; by template see the template
  std::vector<std::unique_ptr<GradientPlan>> gradients;  // by the mask of inputs
  ProgramRef program;
  std::vector<std::shared_ptr<BatchFamily>> batches;
  uint64_t hash;
};

// Python callbacks; set once by the frontend.
struct Hooks {
  PyObject* expand = nullptr;           // (op, attrs, input types, operands) -> (op instance or None, type, differentiable)
  PyObject* expand_gradients = nullptr;  // (op, attrs, input types, op instance, inputs) -> [(number, (op, attrs, op instance, type, used, form)
                                         // or exception)], shared values in front of what reads them
  PyObject* compile_op_instance = nullptr;  // (op instance) -> Program
  PyObject* compile_trace = nullptr;    // (executable, wait, locations of its first and last entry) -> whether it will be
  PyObject* kernel_error = nullptr;     // (labels, label, code, where, location, op or None, its input types) -> exception
  PyObject* host_error = nullptr;       // (error of error_class, where, location, op, attributes, operands) -> exception
  PyObject* ones = nullptr;             // (type) -> (op, attrs)
  PyObject* zeros = nullptr;            // (type) -> (op, attrs)
  PyObject* specialise_error = nullptr; // (op, where) -> raises the current error again, worded for that line
  PyObject* feed_array = nullptr;       // (object, type) -> NumPy array
  PyObject* wide_array = nullptr;       // (tensor) -> NumPy array of a dtype that NumPy has
  PyObject* write_view = nullptr;       // (view tensor's op, attrs, inputs, parent, value) -> tensor
  PyObject* as_operand = nullptr;       // (object) -> tensor, number or NotImplemented
  PyObject* cast = nullptr;             // (tensor, type) -> tensor
  PyObject* error_class = nullptr;      // of errors that locate_error words
  PyObject* locate_error = nullptr;     // (error, function, arguments, their keywords or None) -> error that tells them, or the same
  PyObject* renamed_keywords = nullptr; // (function, names) -> the names that the function has for these keywords, or None
  PyObject* write_out = nullptr;        // (out, result) -> out, which holds the result from then on
  PyObject* display = nullptr;          // (tensor) -> str
  PyObject* construct = nullptr;        // (*sizes or data) -> tensor: what calling the tensor type makes
  PyObject* symbolic_observed = nullptr;  // (tensor, what) -> raises
  PyObject* no_gradient = nullptr;      // (tensor) -> message for backward without a leaf that asks for it
  PyObject* accumulate = nullptr;       // the operation that adds cotangents
  PyObject* copy = nullptr;             // the operation that returns its input
  PyObject* join_rows = nullptr;        // the operation that concatenates the rows of its inputs
  PyObject* row_product = nullptr;      // the operation that multiplies the rows of two inputs and adds them up
  PyObject* row_table = nullptr;        // the operation that adds rows at numbers to zeros
  PyObject* row_sum = nullptr;          // the operation that adds rows one after another
  PyObject* operator_method = nullptr;  // (operator, reflected, in_place) -> the method that it is for `__torch_function__`
  PyObject* pullback_blocks = nullptr;  // () -> the operation that adds gradients with these attributes, each a block in zeros, to its last input if there is one more
  PyObject* pullback_chain = nullptr;   // () -> the operation for a gradient with these attributes that goes on from its last input
  PyObject* pullback_rows = nullptr;    // () -> the operation that computes the rows that a gradient with its attributes adds
  PyObject* view_layout = nullptr;      // (op, attrs, input type, its strides, count of further inputs) -> (strides, integers of a
                                        // ViewedLayout or None) or None
  PyObject* view_array = nullptr;       // (tensor) -> NumPy array on the memory of the tensor's storage
  PyObject* write_storage = nullptr;    // (tensor, value) -> what its root is once the value is written to the tensor
  PyObject* traits_of = nullptr;        // (op instance) -> (whether it defers, whether it checks, (operands, whether they are joined, number
                                        // or -1, offset, step) or None), see Traits
  PyObject* bad_value = nullptr;        // (op, attrs, operands, result, (location, backward), where, op differentiated or None) -> exception, or
                                        // None where the call was to give infinity
  PyObject* is_cheap = nullptr;         // (op instance or template) -> whether a large result is better computed again than kept in memory
  PyObject* template_of = nullptr;      // (op, attrs, input types, which numbers are symbols, whether in any call, whether to make none) -> plan of the result or None
  PyObject* template_gradients = nullptr;  // (template, inputs, values, whether to make none) -> plan of gradients or None
  PyObject* template_program = nullptr;   // (template, values, whether to make none) -> plan of the program or None
  PyObject* plan_trace = nullptr;         // (executable, which numbers are symbols, wait, locations of its first and last entry) -> whether a plan comes
  PyObject* log_batches = nullptr;    // (locations of first and last entry, calls, launches, calls alone by cause): for the log, or null
  PyObject* plan_batch = nullptr;  // (family, members as (op, attrs, operands), outputs, input types, which have the leading axis, its length,
                                   // whether to make none) -> whether a plan may come
  PyObject* dtype_class = nullptr;        // of dtypes, which are equal only to themselves
  PyObject* size_class = nullptr;         // of shapes, a tuple
  PyObject* symbol_class = nullptr;       // of numbers that stand for sizes
  PyObject* symbolic_type = nullptr;      // (type with names of sizes) -> the type with symbols in their place, or the same
  PyObject* wrong_gradient = nullptr;   // (type, what the hook returned, the hook) -> error
  PyObject* sparse_gradient = nullptr;  // (gradient of a table) -> what `.grad` of the table is
  PyObject* listed_operand = nullptr;   // (list, type of its partner) -> tensor
  PyObject* lists_at_once = nullptr;    // not null where lists are operands beside computed tensors, too
  PyObject* declared_equal = nullptr;   // (tensor, object) -> whether they are one tensor of a graph, or NotImplemented
  PyObject* cast_operands = nullptr;    // (op, attrs, input types, operands) -> operands, some of them cast, or None where none has to be
};
extern Hooks hooks;

AutocastPolicy autocast_policy(PyObject* name);  // of the strings that entries have
Operation* operation_of(PyObject* op);  // null with a Python error set
AttributesRef attributes_of(PyObject* tuple);
Attributes* no_attributes();

OpInstanceRef find_op_instance(Operation* op, Attributes* attributes, Type* const* inputs, size_t count);
// As find_op_instance, but asks Python on a miss; arguments are for messages only. Null with a Python error set.
OpInstanceRef op_instance_of(Operation* op, Attributes* attributes, Type* const* inputs, size_t count, PyObject* const* arguments);
// The gradients of the inputs whose bits are set; null with a Python error set.
const GradientPlan* gradient_plan_of(OpInstance* instance, uint64_t wanted);
// Adds a gradient of a call with `count` inputs, after the shared values that it reads.
void add_gradient(GradientPlan& plan, size_t inputs, size_t index, OpInstanceRef gradient, std::vector<int32_t> used, Form form);
// The types of what a gradient uses.
std::vector<Type*> types_read(const GradientPlan& plan, const OpInstance* instance, const std::vector<int32_t>& used);
bool read_slots(PyObject* tuple, std::vector<int32_t>& slots);  // false with a Python error set
// The traits of a call; null with a Python error set.
const Traits* traits_of(OpInstance* instance);
// 1 if a large result is rematerialised rather than kept in memory; -1 with a Python error set.
int is_cheap(OpInstance* instance);
// A new op instance without a result type, which must not exist.
OpInstanceRef insert_op_instance(Operation* op, Attributes* attributes, Type* const* inputs, size_t count);
PyObject* types_tuple(Type* const* inputs, size_t count);  // null with a Python error set
// The closed graph of a call whose sizes are known, borrowed; null with a Python error set.
PyObject* graph_of(OpInstance* instance);
// The labels of the unfused program for run-time errors, borrowed; null with a Python error set.
PyObject* labels_of(OpInstance* instance);
// The unfused program; null with a Python error set.
Program* program_of(OpInstance* instance);
// Accounts for bytes that an op instance holds.
void charge_op_instances(int64_t bytes);

PyObject* python_type(Type* type);           // borrowed
Type* type_from_python(PyObject* tensor_type);
ProgramRef program_from_python(PyObject* object);  // null with a Python error set

}  // namespace twofold
