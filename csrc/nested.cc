#include <Python.h>

#include "nested.h"

#include <algorithm>
#include <cstring>

#include "buffer.h"
#include "program.h"

namespace twofold {
namespace {

constexpr int64_t kIterationNanoseconds = 50;  // of an iteration, beside its body

int64_t rounded(int64_t nbytes) {
  constexpr auto alignment = static_cast<int64_t>(kAlignment);
  return std::max<int64_t>((nbytes + alignment - 1) / alignment, 1) * alignment;
}

Finite run_part(const Part& part, void* const* inputs, void* const* outputs, char* arena, Interrupts& interrupts) {
  try {
    return part.program->run_in(inputs, outputs, arena, interrupts);
  } catch (const KernelError& error) {
    throw KernelError{part.first_label + error.label, error.code};
  }
}

char* advanced(void* pointer, int64_t nbytes) { return static_cast<char*>(pointer) + nbytes; }

}  // namespace

Finite Branch::run(void* const* slots, Interrupts& interrupts) const {
  int64_t choice;
  std::memcpy(&choice, slots[0], sizeof choice);
  // An index out of range selects the last branch.
  auto last = static_cast<int64_t>(parts.size()) - 1;
  const Part& part = parts[static_cast<size_t>(choice < 0 || choice > last ? last : choice)];
  void* const* first = slots + 1;
  return run_part(part, first, first + inputs, static_cast<char*>(first[inputs + outputs]), interrupts);
}

bool Branch::has_host() const {
  return std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.program->has_host; });
}

int64_t Branch::scratch_bytes() const {
  int64_t most = 0;
  for (const Part& part : parts) most = std::max(most, part.program->arena_bytes);
  return most;
}

size_t Branch::memory() const {
  size_t total = sizeof *this;
  for (const Part& part : parts) total += part.program->memory();
  return total;
}

size_t Loop::memory() const { return sizeof *this + body.program->memory(); }

bool Loop::has_host() const { return body.program->has_host; }

size_t Loop::slots() const {
  return 2 * carried_nbytes.size() + read_nbytes.size() + written_nbytes.size() + fixed + (conditional ? 1 : 0) +
         (counted ? 1 : 0) + 2;
}

int64_t Loop::scratch_bytes() const {
  int64_t total = rounded(body.program->arena_bytes) + static_cast<int64_t>(kAlignment);
  for (int64_t nbytes : carried_nbytes) total += 2 * rounded(nbytes);
  return total + rounded(static_cast<int64_t>(placed.size() * sizeof(int64_t)));
}

int64_t Loop::iterations(void* const* slots) const {
  if (!counted) return limit;
  int64_t count;
  std::memcpy(&count, slots[conditional ? 1 : 0], sizeof count);
  count = std::max<int64_t>(count, 0);
  return limit < 0 ? count : std::min(count, limit);
}

// Writes the rows that an iteration returned into the carry; an invalid offset must never write out of bounds.
void Loop::put_block(const Placed& value, void* const* results, const std::vector<void*>& outputs, std::vector<void*>& inputs,
                     int64_t position) const {
  const size_t k = value.carried;
  const int64_t size = carried_nbytes[k];
  const int64_t at = std::clamp<int64_t>(position * value.row_nbytes, 0, value.nbytes - size);
  std::memcpy(advanced(results[k], at), outputs[k], static_cast<size_t>(size));
  inputs[k] = results[k];
}

Finite Loop::run(void* const* slots, Interrupts& interrupts) const {
  const size_t carried = carried_nbytes.size(), read = read_nbytes.size(), written = written_nbytes.size();
  void* const* first = slots + (conditional ? 1 : 0) + (counted ? 1 : 0);
  void* const* rows = first + carried;
  void* const* results = rows + read + fixed;
  void* const* rows_out = results + carried;
  char* arena = static_cast<char*>(rows_out[written + 1]);

  std::vector<void*> inputs(first, first + carried + read + fixed);
  std::vector<void*> outputs(carried + written + placed.size() + 1);
  std::vector<char*> spare(2 * carried);
  char* free = arena + rounded(body.program->arena_bytes);
  for (size_t k = 0; k < 2 * carried; ++k) {
    spare[k] = free;
    free += rounded(carried_nbytes[k / 2]);
  }
  auto* positions = reinterpret_cast<int64_t*>(free);
  auto* go_on = reinterpret_cast<uint8_t*>(free + rounded(static_cast<int64_t>(placed.size() * sizeof(int64_t))));
  for (size_t k = 0; k < placed.size(); ++k) {
    const Placed& value = placed[k];
    outputs[carried + written + k] = positions + k;
    std::memcpy(results[value.carried], inputs[value.carried], static_cast<size_t>(value.nbytes));
    inputs[value.carried] = results[value.carried];
  }
  outputs.back() = go_on;
  *go_on = conditional ? *static_cast<const uint8_t*>(slots[0]) : 1;

  const int64_t most = iterations(slots);
  int64_t iteration = 0;
  Finite worst = Finite::kAll;
  for (; *go_on && (most < 0 || iteration < most); ++iteration) {
    const int64_t row = descending ? most - 1 - iteration : iteration;
    for (size_t k = 0; k < carried; ++k) outputs[k] = spare[2 * k + static_cast<size_t>(iteration & 1)];
    for (size_t k = 0; k < read; ++k) inputs[carried + k] = advanced(rows[k], row * read_nbytes[k]);
    for (size_t k = 0; k < written; ++k) outputs[carried + k] = advanced(rows_out[k], row * written_nbytes[k]);
    worst = std::max(worst, run_part(body, inputs.data(), outputs.data(), arena, interrupts));
    for (size_t k = 0; k < carried; ++k) inputs[k] = outputs[k];
    for (size_t k = 0; k < placed.size(); ++k) put_block(placed[k], results, outputs, inputs, positions[k]);
    interrupts.after(kIterationNanoseconds);
  }
  for (size_t k = 0; k < carried; ++k) {
    if (results[k] != inputs[k]) std::memcpy(results[k], inputs[k], static_cast<size_t>(carried_nbytes[k]));
  }
  for (size_t k = 0; k < written && limit > iteration; ++k) {
    std::memset(advanced(rows_out[k], iteration * written_nbytes[k]), 0, static_cast<size_t>((limit - iteration) * written_nbytes[k]));
  }
  std::memcpy(rows_out[written], &iteration, sizeof iteration);
  return worst;
}

bool NestedForm::read(PyObject* tuple) {
  is_loop_ = PyTuple_Check(tuple) && PyTuple_GET_SIZE(tuple) > 2;
  if (!is_loop_) return PyArg_ParseTuple(tuple, "nn", &inputs_, &outputs_);
  int descending, conditional, counted;
  PyObject* placed;
  if (!PyArg_ParseTuple(tuple, "pppnnnnO!", &descending, &conditional, &counted, &carried_, &read_, &written_, &fixed_, &PyTuple_Type,
                        &placed)) {
    return false;
  }
  descending_ = descending;
  conditional_ = conditional;
  counted_ = counted;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(placed); ++i) placed_.push_back(PyLong_AsSize_t(PyTuple_GET_ITEM(placed, i)));
  return !PyErr_Occurred();
}

size_t NestedForm::numbers() const { return is_loop_ ? 1 + carried_ + read_ + written_ + 2 * placed_.size() : 0; }

std::shared_ptr<const Nested> NestedForm::made(std::vector<Part> parts, const int64_t* numbers) const {
  if (!is_loop_) {
    auto branch = std::make_shared<Branch>();
    branch->parts = std::move(parts);
    branch->inputs = inputs_;
    branch->outputs = outputs_;
    return branch;
  }
  auto loop = std::make_shared<Loop>();
  loop->body = std::move(parts.at(0));
  loop->descending = descending_;
  loop->conditional = conditional_;
  loop->counted = counted_;
  loop->fixed = fixed_;
  loop->limit = *numbers++;
  const auto take = [&numbers](size_t count) {
    const int64_t* first = numbers;
    return std::vector<int64_t>(first, numbers += count);
  };
  loop->carried_nbytes = take(carried_);
  loop->read_nbytes = take(read_);
  loop->written_nbytes = take(written_);
  for (size_t k : placed_) {
    loop->placed.push_back(Loop::Placed{k, numbers[0], numbers[1]});
    numbers += 2;
  }
  return loop;
}

}  // namespace twofold
