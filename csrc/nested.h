// Instructions of control flow: branches and loops over nested programs. They know no operation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "finite.h"

typedef struct _object PyObject;

namespace twofold {

class Interrupts;
class Program;

// What an instruction runs in place of a kernel. Nested programs have their arenas in `scratch`, which the
// outer program has reserved.
class Nested {
 public:
  virtual ~Nested() = default;
  // `slots` are the instruction's buffers, the last one scratch memory. Returns and throws as Program::run_in does.
  virtual Finite run(void* const* slots, Interrupts& interrupts) const = 0;
  virtual bool has_host() const = 0;
  virtual size_t slots() const = 0;
  // Scratch memory that `run` needs.
  virtual int64_t scratch_bytes() const = 0;
  // Approximate bytes of the nested programs.
  virtual size_t memory() const = 0;
};

struct Part {
  std::shared_ptr<const Program> program;
  int32_t first_label;  // the offset of its labels among those of the outer program
};

// A branch. Slots: index (int64), inputs, outputs, scratch. The selected program reads all inputs and writes all outputs.
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

// A loop. Slots: whether to start (bool, if conditional), number of iterations (int64, if counted), the initial
// carry, xs, constants; then the last carry,
// ys, the number of iterations made (int64), scratch.
// The outputs of the body: the carry, a row of each of ys, offsets (int64, one for each in-place value) and, if
// conditional, whether to continue (bool). Of an in-place value the body returns only the rows that change, and the index
// of the first: the value stays in the buffer of the result, and the body reads it there.
class Loop final : public Nested {
 public:
  Part body;
  int64_t limit = -1;  // most iterations; -1: no limit, and then no ys
  bool descending = false, conditional = false, counted = false;
  std::vector<int64_t> carried_nbytes, read_nbytes, written_nbytes;
  size_t fixed = 0;
  struct Placed {
    size_t carried;      // the number of the carry; carried_nbytes has the size of its rows that change
    int64_t nbytes;      // of the whole value
    int64_t row_nbytes;
  };
  std::vector<Placed> placed;

  Finite run(void* const* slots, Interrupts& interrupts) const override;
  bool has_host() const override;
  size_t slots() const override;
  // The arena of the body, then two buffers for each carry, then the offsets, then a byte.
  int64_t scratch_bytes() const override;
  size_t memory() const override;

 private:
  int64_t iterations(void* const* slots) const;
  void put_block(const Placed& value, void* const* results, const std::vector<void*>& outputs, std::vector<void*>& inputs,
                 int64_t position) const;
};

// A nested instruction without what depends on sizes; with programs and integers it is instantiated.
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
