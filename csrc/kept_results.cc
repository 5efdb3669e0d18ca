#include <Python.h>

#include "kept_results.h"

#include <algorithm>
#include <new>
#include <utility>

#include "program.h"
#include "value.h"

namespace twofold {
namespace {

constexpr size_t kMostInputs = 8;        // on which an instruction depends
constexpr int64_t kWorthwhile = 1000;    // nanoseconds
constexpr int64_t kWorthwhilePart = 64;  // of the work of the program: one part of so many
constexpr uint16_t kMostLooks = 1 << 12;
constexpr uint16_t kData = 3;            // times as often as a weight any other input must have stayed the same
constexpr uint16_t kOften = 4;           // runs that make it worthwhile
constexpr uint16_t kLongestPause = 32;   // runs

// They may be as large as the weights of a model, so they have twice the budget of all caches beside it.
auto& cache = *new Cache<KeptResults>("kept results", 64, false);
const bool holds = (add_holder([] { return cache.drop_oldest(); }), true);

std::string key_of(const KeptResults* results) {
  const auto address = reinterpret_cast<uintptr_t>(results);
  return std::string(reinterpret_cast<const char*>(&address), sizeof address);
}

// The number that stands for what an input holds; 0 if it may change unseen.
uint64_t content_of(const InputValue& input) { return input.value && input.value->buffer ? input.value->buffer->content() : 0; }

void count(uint16_t& times) { times = std::min<uint16_t>(static_cast<uint16_t>(times + 1), kMostLooks); }

void make_set(std::vector<int32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

bool is_arena(const BufferSlot& slot) { return slot.kind == BufferSlot::kArena; }

}  // namespace

Derivable::Derivable(const std::vector<Instruction>& instructions, const std::vector<BufferSlot>& slots, const std::vector<int64_t>& buffer_sizes) {
  if (buffer_sizes.empty()) return;
  // The first instruction that names a buffer of the arena writes it, and no other does.
  constexpr int32_t kNone = -1, kUnseen = -2;
  std::vector<int32_t> maker(buffer_sizes.size(), kUnseen);
  makers_.assign(slots.size(), kNone);
  std::vector<size_t> made;     // buffers that an instruction makes
  std::vector<int32_t> inputs;  // on which it depends
  for (uint32_t number = 0; number < instructions.size(); ++number) {
    const Instruction& instruction = instructions[number];
    const BufferSlot* slot = slots.data() + instruction.first_slot;
    bool derived = !instruction.host && !instruction.nested;
    made.clear();
    inputs.clear();
    for (uint32_t i = 0; i < instruction.slots; ++i) {
      if (slot[i].kind == BufferSlot::kInput) inputs.push_back(static_cast<int32_t>(slot[i].index));
      if (slot[i].kind == BufferSlot::kOutput) derived = false;
      if (!is_arena(slot[i])) continue;
      const auto buffer = static_cast<size_t>(slot[i].index);
      if (maker[buffer] == kUnseen) made.push_back(buffer);
      else if (maker[buffer] == kNone) derived = false;
      else for (int32_t input : steps_[static_cast<size_t>(maker[buffer])].inputs) inputs.push_back(input);
    }
    make_set(inputs);
    derived = derived && inputs.size() <= kMostInputs;
    for (size_t buffer : made) maker[buffer] = derived ? static_cast<int32_t>(steps_.size()) : kNone;
    for (uint32_t i = 0; i < instruction.slots; ++i) {
      if (is_arena(slot[i])) makers_[instruction.first_slot + i] = maker[static_cast<size_t>(slot[i].index)];
    }
    if (!derived) continue;
    inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
    steps_.push_back(Step{number, static_cast<int64_t>(instruction.nanoseconds()), inputs});
  }
  if (steps_.empty()) {
    makers_ = {};
    return;
  }
  make_set(inputs_);
  sizes_ = buffer_sizes;
  for (const BufferSlot& slot : slots) buffers_.push_back(is_arena(slot) ? static_cast<int32_t>(slot.index) : kNone);
}

size_t Derivable::memory() const {
  size_t total = memory_of(steps_) + memory_of(inputs_) + memory_of(makers_) + memory_of(buffers_) + memory_of(sizes_);
  for (const Step& step : steps_) total += memory_of(step.inputs);
  return total;
}

std::shared_ptr<KeptResults> KeptResults::make(const Program& program, const std::vector<int32_t>& constant, std::vector<uint64_t> contents,
                                               size_t room) {
  const Derivable& derivable = program.derivable;
  const auto count = program.instructions.size();
  auto made = std::make_shared<KeptResults>();
  made->program_ = &program;
  made->skipped_.assign(count, false);
  made->offsets_.assign(program.slots.size(), -1);
  std::vector<bool> kept(derivable.steps().size());
  std::vector<int64_t> offset_of;  // by buffer
  const auto slots_of = [&program](size_t instruction) {
    const Instruction& one = program.instructions[instruction];
    return std::pair<size_t, size_t>(one.first_slot, one.first_slot + one.slots);
  };
  int64_t saved = 0, bytes = 0;
  for (size_t number = 0; number < kept.size(); ++number) {
    const Derivable::Step& step = derivable.steps()[number];
    if (!std::includes(constant.begin(), constant.end(), step.inputs.begin(), step.inputs.end())) continue;
    const auto [first, end] = slots_of(step.instruction);
    bool reads_kept = true;
    int64_t own = 0;
    for (size_t slot = first; slot < end; ++slot) {
      if (derivable.maker(slot) == static_cast<int32_t>(number)) own += derivable.size(derivable.buffer(slot));
      else if (derivable.maker(slot) >= 0) reads_kept = reads_kept && kept[static_cast<size_t>(derivable.maker(slot))];
    }
    if (!reads_kept || static_cast<size_t>(bytes + own) > room) continue;
    kept[number] = made->skipped_[step.instruction] = true;
    saved += step.nanoseconds;
    bytes += own;
  }
  if (saved < kWorthwhile || saved < program.total_work / kWorthwhilePart) return nullptr;
  // Only what others read is kept; the rest stays in the arena.
  bytes = 0;
  for (size_t instruction = 0; instruction < count; ++instruction) {
    const auto [first, end] = slots_of(instruction);
    for (size_t slot = first; slot < end && !made->skipped_[instruction]; ++slot) {
      const int32_t maker = derivable.maker(slot);
      if (maker < 0 || !kept[static_cast<size_t>(maker)]) continue;
      const auto buffer = static_cast<size_t>(derivable.buffer(slot));
      if (buffer >= offset_of.size()) offset_of.resize(buffer + 1, -1);
      if (offset_of[buffer] >= 0) continue;
      offset_of[buffer] = bytes;
      constexpr int64_t kLine = static_cast<int64_t>(kAlignment);
      bytes += (derivable.size(static_cast<int32_t>(buffer)) + kLine - 1) / kLine * kLine;
    }
  }
  for (size_t slot = 0; slot < program.slots.size(); ++slot) {
    const auto buffer = static_cast<size_t>(derivable.buffer(slot));
    if (derivable.maker(slot) >= 0 && buffer < offset_of.size()) made->offsets_[slot] = offset_of[buffer];
  }
  made->constant_ = constant;
  made->contents_ = std::move(contents);
  made->memory_ = PoolMemory(static_cast<size_t>(bytes));
  return made;
}

size_t KeptResults::memory() const {
  return sizeof *this + memory_.size() + skipped_.capacity() / 8 + memory_of(offsets_) + memory_of(constant_) + memory_of(contents_);
}

bool InputWatch::look(const InputValues& inputs) {
  std::vector<bool> same(inputs.count());
  bool all_same = true;
  for (size_t k = 0; k < same.size(); ++k) {
    const uint64_t content = content_of(inputs.at(k));
    same[k] = content != 0 && content == std::exchange(seen_[k].content, content);
    all_same = all_same && same[k];
  }
  for (size_t k = 0; k < same.size(); ++k) {
    Seen& seen = seen_[k];
    if (!same[k]) seen.same = seen.stayed = 0;
    else if (count(seen.same); !all_same) count(seen.stayed);
  }
  const auto& needed = program_->derivable.inputs();
  return std::any_of(needed.begin(), needed.end(), [&same](int32_t input) { return same[static_cast<size_t>(input)]; });
}

std::shared_ptr<KeptResults> InputWatch::find(const InputValues& inputs) const try {
  std::vector<int32_t> constant;
  std::vector<uint64_t> contents;
  for (int32_t input : program_->derivable.inputs()) {
    const auto k = static_cast<size_t>(input);
    const InputValue given = inputs.at(k);
    const bool is_weight = given.value && (given.is_captured || (given.value->is_leaf && given.value->requires_grad));
    if (is_weight ? seen_[k].same < wanted_ : seen_[k].stayed < kData * wanted_) continue;
    constant.push_back(input);
    contents.push_back(seen_[k].content);
  }
  if (constant.empty()) return nullptr;
  return KeptResults::make(*program_, constant, std::move(contents), cache.account.budget);
} catch (const std::bad_alloc&) {
  return nullptr;  // a run needs less memory without them
}

std::shared_ptr<KeptResults> InputWatch::for_run(const ProgramRef& program, const InputValues& inputs) {
  if (program_ != program) {
    drop();
    program_ = program;
    seen_.assign(inputs.count(), Seen());
    wait_ = 0;
    look(inputs);
    return nullptr;
  }
  if (std::shared_ptr<KeptResults> kept = kept_.lock()) {
    const auto& constant = kept->constant();
    bool holds = true;
    for (size_t k = 0; k < constant.size() && holds; ++k) {
      holds = content_of(inputs.at(static_cast<size_t>(constant[k]))) == kept->contents()[k];
    }
    if (holds) {
      kept->used = next_use();
      count(read_);
      return kept;
    }
    drop();
  }
  if (std::exchange(had_, false) && read_ < kOften) {
    wanted_ = std::min<uint16_t>(static_cast<uint16_t>(2 * wanted_), kMostLooks);
  }
  if (wait_ > 0) return --wait_, nullptr;
  pause_ = look(inputs) ? uint16_t{1} : std::min<uint16_t>(static_cast<uint16_t>(2 * pause_), kLongestPause);
  wait_ = static_cast<uint16_t>(pause_ - 1);
  return pause_ == 1 ? find(inputs) : nullptr;
}

void InputWatch::keep(std::shared_ptr<KeptResults> results, const InputValues& inputs) {
  // Another thread may have run a later program meanwhile.
  if (results->filled || !results->are_of(program_.get())) return;
  const auto& constant = results->constant();
  for (size_t k = 0; k < constant.size(); ++k) {
    const InputValue input = inputs.at(static_cast<size_t>(constant[k]));
    if (content_of(input) != results->contents()[k]) return;  // donated meanwhile
    input.value->buffer->has_kept = true;
  }
  drop();
  read_ = 0;
  had_ = true;
  results->filled = true;
  kept_ = results;
  cache.insert(key_of(results.get()), std::move(results));
  cache.bound();
}

void InputWatch::drop() {
  const std::shared_ptr<KeptResults> kept = kept_.lock();
  if (kept) cache.drop_if([&kept](const std::shared_ptr<KeptResults>& one) { return one == kept; });
  kept_.reset();
}

void forget_kept_results_of(uint64_t content) noexcept try {
  cache.drop_if([content](const std::shared_ptr<KeptResults>& one) {
    return std::find(one->contents().begin(), one->contents().end(), content) != one->contents().end();
  });
} catch (const std::bad_alloc&) {
  // They stay until something else drops them; no run reads them.
}

}  // namespace twofold
