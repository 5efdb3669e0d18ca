// Instructions that run other programs: one chosen among several, or one again and again. They know no operation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "finite.h"

typedef struct _object PyObject;

namespace twofold {

class Interrupts;
class Program;

// Something an instruction runs in place of a kernel. Programs inside work in `scratch`, which the instruction's
// own program has reserved.
class Nested {
 public:
  virtual ~Nested() = default;
  // `slots` are the instruction's buffers, the last one scratch memory. Returns and throws as Program::run_in does.
  virtual Finite run(void* const* slots, Interrupts& interrupts) const = 0;
  virtual bool has_host() const = 0;
  virtual size_t slots() const = 0;
  // Scratch memory that `run` needs.
  virtual int64_t scratch_bytes() const = 0;
  // Bytes of the programs inside.
  virtual size_t memory() const = 0;
};

struct Part {
  std::shared_ptr<const Program> program;
  int32_t first_label;  // what to add to a label of `program` for one of the program around it
};

// Slots: choice (int64), inputs, outputs, scratch. The chosen program gets all inputs and writes all outputs.
class Branch final : public Nested {
 public:
  std::vector<Part> parts;
  size_t inputs = 0, outputs = 0;

  Finite run(void* const* slots, Interrupts& interrupts) const override;
  bool has_host() const override;
  size_t slots() const override { return inputs + outputs + 2; }
  int64_t scratch_bytes() const override;
  size_t memory() const override;
};

// Slots: whether to start (bool, if conditional), number of iterations (int64, if counted), first values of what is
// carried from iteration to iteration, arrays of which each iteration reads a row, fixed inputs; then the last values carried,
// arrays of which each iteration writes a row, the number of iterations made (int64), scratch.
// The body's outputs: the values carried on, the rows written, positions (int64, one for each placed value) and, if
// conditional, whether to go on (bool). Of a placed value the body returns only the block that changes, and which
// row that block begins at: the value stays where the result is, and the body reads it there.
class Loop final : public Nested {
 public:
  Part body;
  int64_t limit = -1;  // most iterations; -1: no limit, and then no rows
  bool descending = false, conditional = false, counted = false;
  std::vector<int64_t> carried_nbytes, read_nbytes, written_nbytes;
  size_t fixed = 0;
  struct Placed {
    size_t carried;      // which of the values carried; its entry in carried_nbytes is that of the block
    int64_t nbytes;      // of the whole value
    int64_t row_nbytes;
  };
  std::vector<Placed> placed;

  Finite run(void* const* slots, Interrupts& interrupts) const override;
  bool has_host() const override;
  size_t slots() const override;
  // That of the body, then two buffers for each value carried, then the positions, then a byte.
  int64_t scratch_bytes() const override;
  size_t memory() const override;

 private:
  int64_t iterations(void* const* slots) const;
  void put_block(const Placed& value, void* const* results, const std::vector<void*>& outputs, std::vector<void*>& inputs,
                 int64_t position) const;
};

// What no size changes of something nested; with programs and numbers it is made for given sizes.
class NestedForm {
 public:
  // From (inputs, outputs) of a branch, or of a loop from (descending, conditional, counted, how many values are carried,
  // read, written and fixed, which of the carried are placed); false with a Python error set.
  bool read(PyObject* tuple);
  // How many numbers it takes: of a loop the limit, the bytes of what is carried, read and written, then of each placed
  // value its bytes and those of a row.
  size_t numbers() const;
  std::shared_ptr<const Nested> made(std::vector<Part> parts, const int64_t* numbers) const;

 private:
  bool is_loop_ = false, descending_ = false, conditional_ = false, counted_ = false;
  size_t inputs_ = 0, outputs_ = 0;
  size_t carried_ = 0, read_ = 0, written_ = 0, fixed_ = 0;
  std::vector<size_t> placed_;
};

}  // namespace twofold
