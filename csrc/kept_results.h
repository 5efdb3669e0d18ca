// Results that depend on inputs alone which do not change from run to run, such as packed weights: a program computes them
// once and keeps them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "buffer.h"
#include "cache.h"

namespace twofold {

struct BufferSlot;
struct Instruction;
struct Value;
class Program;
using ProgramRef = std::shared_ptr<Program>;

// The instructions of a program that depend on inputs alone, and on few of them. Empty in most programs.
class Derivable {
 public:
  struct Step {
    uint32_t instruction;
    int64_t nanoseconds;          // estimated
    std::vector<int32_t> inputs;  // sorted
  };

  Derivable() = default;
  // Before the slots of the arena become offsets: they hold the number of a buffer, of these sizes.
  Derivable(const std::vector<Instruction>& instructions, const std::vector<BufferSlot>& slots, const std::vector<int64_t>& buffer_sizes);

  bool empty() const { return steps_.empty(); }
  const std::vector<Step>& steps() const { return steps_; }
  // Sorted: those that steps depend on.
  const std::vector<int32_t>& inputs() const { return inputs_; }
  // The step that makes the buffer of a slot; -1 if none does.
  int32_t maker(size_t slot) const { return makers_[slot]; }
  // The number of the buffer of such a slot, and its size.
  int32_t buffer(size_t slot) const { return buffers_[slot]; }
  int64_t size(int32_t buffer) const { return sizes_[static_cast<size_t>(buffer)]; }
  size_t memory() const;

 private:
  std::vector<Step> steps_;
  std::vector<int32_t> inputs_, makers_, buffers_;  // makers and buffers: by slot
  std::vector<int64_t> sizes_;                      // of buffers that steps make
};

// What a run computes for later ones, or reads of what an earlier one kept.
class KeptResults {
 public:
  // The steps that depend on `constant` inputs alone, as far as their results fit into `room` bytes; null if these take
  // too little time to be worth it. `contents` are those of the constant inputs, in order.
  static std::shared_ptr<KeptResults> make(const Program& program, const std::vector<int32_t>& constant, std::vector<uint64_t> contents,
                                           size_t room);

  // Of a run: whether an instruction need not run.
  bool skips(size_t instruction) const { return filled && skipped_[instruction]; }
  // The kept buffer of a slot; null if it is in the arena.
  void* at(size_t slot) const { return offsets_[slot] < 0 ? nullptr : memory_.data() + offsets_[slot]; }
  bool are_of(const Program* program) const { return program_ == program; }
  const std::vector<int32_t>& constant() const { return constant_; }
  const std::vector<uint64_t>& contents() const { return contents_; }

  uint64_t used = 0;    // when, see Cache
  bool filled = false;  // a run has computed the results
  size_t memory() const;

 private:
  const Program* program_ = nullptr;  // whose instructions and slots the numbers are
  std::vector<bool> skipped_;         // by instruction
  std::vector<int64_t> offsets_;      // by slot; -1: not kept
  std::vector<int32_t> constant_;
  std::vector<uint64_t> contents_;
  PoolMemory memory_;
};

// An input of a run: a captured value never changes; null if it has none.
struct InputValue {
  const Value* value = nullptr;
  bool is_captured = false;
};

// The values of the inputs of a run, for whoever looks at what they hold.
class InputValues {
 public:
  // The value is that of the run, while it lasts.
  virtual InputValue at(size_t input) const = 0;
  virtual size_t count() const = 0;

 protected:
  ~InputValues() = default;
};

// Watches which inputs of the runs of a program stay the same. A weight (a captured value, or a leaf that requires grad) is
// taken to be constant once it has stayed the same from one run to the next; any other input once it has several times while
// others changed, so that nothing is kept of data that happen to be the same in all runs.
class InputWatch {
 public:
  InputWatch() = default;
  InputWatch(const InputWatch&) = delete;
  ~InputWatch() { drop(); }

  // The results for a run of the program on these inputs, filled or to be filled by it; null if there are none.
  std::shared_ptr<KeptResults> for_run(const ProgramRef& program, const InputValues& inputs);
  // After a run without an error on these inputs that has filled them.
  void keep(std::shared_ptr<KeptResults> results, const InputValues& inputs);

 private:
  struct Seen {
    uint64_t content = 0;
    uint16_t same = 0;    // times it was looked at and had stayed the same
    uint16_t stayed = 0;  // of them, those in which another input had changed
  };
  // Whether an input that instructions depend on has stayed the same.
  bool look(const InputValues& inputs);
  std::shared_ptr<KeptResults> find(const InputValues& inputs) const;
  void drop();

  std::shared_ptr<Program> program_;
  std::vector<Seen> seen_;  // by input
  std::weak_ptr<KeptResults> kept_;
  uint16_t wanted_ = 1;  // times for a weight to stay the same; doubled whenever one changed soon after all
  uint16_t read_ = 0;    // runs that read what is kept
  bool had_ = false;     // results were kept that may have been evicted since
  uint16_t wait_ = 0;    // runs until inputs are looked at again
  uint16_t pause_ = 1;
};

// What a weight held is gone.
void forget_kept_results_of(uint64_t content) noexcept;

}  // namespace twofold
