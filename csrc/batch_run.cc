#include <Python.h>

#include "batch_run.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "batch_program.h"
#include "copies.h"
#include "profile.h"

namespace twofold {
namespace {

constexpr int64_t kLaunchNanoseconds = 500;  // beside its kernels

// Rounded up to an eighth of a power of two: traces of about the same size use the same block, though the next may be a little larger.
size_t with_room(size_t nbytes) {
  const size_t step = std::max<size_t>(std::bit_floor(nbytes) / 8, 1);
  return (nbytes + step - 1) / step * step;
}

class Run : public BatchRun {
 public:
  Run(const CanonicalTrace& canonical, std::shared_ptr<const BatchPlan> plan, void* const* inputs)
      : canonical_(canonical),
        held_(std::move(plan)),
        plan_(*held_),
        inputs_(inputs, inputs + canonical.trace.leaves.size()),
        kept_results_(plan_.launches.size()),
        at_(plan_.at.data()) {}

  bool find_programs() {
    programs_.reserve(plan_.launches.size());
    for (const Launch& launch : plan_.launches) {
      if (!find_program(launch)) return false;
    }
    find_moving();
    allocate();
    return true;
  }

  bool needs_python() const override { return has_host_; }
  int64_t work() const override { return work_; }

  void execute(Interrupts& interrupts, std::atomic<uint32_t>* done) override {
    interrupts_ = &interrupts;
    for (uint32_t number = 0; number < plan_.launches.size(); ++number) {
      run_launch(number, plan_.launches[number]);
      if (done) done->store(number + 1, std::memory_order_release);
      interrupts.after(kLaunchNanoseconds);
    }
  }

  std::pair<uint32_t, const void*> location(size_t output) const override {
    const Ref entry = canonical_.outputs[output];
    const int32_t home = plan_.home[static_cast<size_t>(entry)];
    return {home < 0 ? 0 : static_cast<uint32_t>(home) + 1, row(entry)};
  }

  void finish(size_t apart, std::vector<BufferRef>& outputs) override {
    ++batch_counts.traces;
    batch_counts.launches += launches_;
    batch_counts.calls += calls_;
    find_kept(apart);
    for (Ref ref : canonical_.outputs) outputs.push_back(output(static_cast<uint32_t>(ref), outputs.size() >= apart));
  }

 private:
  // The programs of a launch: one for all of its calls, or, where there is none yet, those of its calls, one after the other.
  struct Programs {
    ProgramRef together;
    std::vector<ProgramRef> members;
  };

  bool find_program(const Launch& launch) {
    Programs& found = programs_.emplace_back();
    if (launch.joins) return true;
    if (launch.body) {
      if (launch.alone) found.together = launch.body->alone->program_for(1);
      else if (!body_program(*launch.body, launch.rows(), &found.together)) return false;
    } else if (!launch.is_chain() && launch.members > 1 && launch.mask &&
               !batch_program(launch.instance, launch.mask, launch.members, &found.together)) {
      return false;
    }
    if (found.together) {
      ++launches_;
      calls_ += launch.members * (launch.body ? launch.body->members.size() : 1);
      count_work(*found.together, 1);
      return true;
    }
    for (size_t k = 0; k < (launch.body ? launch.body->members.size() : 1); ++k) {
      OpInstance* instance = launch.body ? launch.body->members[k].instance.get() : launch.instance;
      if (!program_of(instance)) return false;
      found.members.push_back(instance->program);
      count_work(*instance->program, launch.members);
    }
    return true;
  }

  void count_work(const Program& program, int64_t runs) {
    work_ += program.total_work * runs;
    has_host_ = has_host_ || program.has_host;
  }

  // Memory for the results of all launches: in one arena, or alone where some outlive the run.
  void allocate() {
    arena_ = BufferRef(new_buffer(with_room(static_cast<size_t>(plan_.arena_bytes))));
    results_.reserve(plan_.launches.size());
    for (size_t k = 0; k < plan_.launches.size(); ++k) {
      if (plan_.offsets[k] < 0) kept_results_[k] = BufferRef(new_buffer(static_cast<size_t>(plan_.launches[k].nbytes())));
      results_.push_back(plan_.offsets[k] < 0 ? static_cast<char*>(kept_results_[k]->data) : static_cast<char*>(arena_->data) + plan_.offsets[k]);
    }
  }

  void find_moving() {
    if (plan_.moving.empty()) return;
    offsets_ = plan_.at;
    at_ = offsets_.data();
    for (const MovingPart& part : plan_.moving) {
      int64_t number = 0;
      if (part.number >= 0) std::memcpy(&number, inputs_[part.number], sizeof number);
      offsets_[part.entry] = (part.source >= 0 ? offsets_[static_cast<size_t>(part.source)] : 0) + part.offset + part.step * number;
    }
  }

  char* row(Ref ref) const {
    if (ref < 0) return static_cast<char*>(inputs_[~ref]);
    const auto entry = static_cast<size_t>(ref);
    const int32_t home = plan_.home[entry];
    return (home >= 0 ? results_[static_cast<size_t>(home)] : static_cast<char*>(inputs_[~home])) + at_[entry];
  }

  Ref ref_of(const Launch& launch, uint32_t member, uint32_t position) const {
    return plan_.refs[plan_.first_ref[plan_.members[launch.first_member + member]] + position];
  }

  void note_entry(const Launch& launch, uint32_t member, size_t within = 0) const {
    if (profile::is_on()) profile::context.entry = static_cast<int32_t>(plan_.members[launch.first_member + member] + within);
  }

  static void note_launch(uint32_t number) {
    if (profile::is_on()) profile::context.entry = ProfileEvent::kWhole - 1 - static_cast<int32_t>(number);
  }

  void run_launch(uint32_t number, const Launch& launch) {
    if (launch.joins) join(number, launch);
    else if (programs_[number].together) run_together(number, launch);
    else if (launch.body) run_members(number, launch);
    else if (launch.is_chain()) run_chain(number, launch);
    else run_each(number, launch);
  }

  void run_program(const Program& program, void* const* inputs, void* const* outputs) {
    if (has_host_) return program.run(inputs, outputs, *interrupts_);
    const PoolMemory arena(static_cast<size_t>(program.arena_bytes));
    program.run_in(inputs, outputs, arena.data(), *interrupts_);
  }

  // A chain: its calls alternate between two buffers; the last one writes to the result.
  void run_chain(uint32_t number, const Launch& launch) {
    const PoolMemory other(static_cast<size_t>(launch.instance->output->nbytes));
    void *target = results_[number], *source = other.data();
    if (launch.members % 2 == 0) std::swap(target, source);
    const auto count = static_cast<uint32_t>(launch.instance->inputs.size());
    for (uint32_t member = 0; member < launch.members; ++member) {
      pointers_.clear();
      for (uint32_t k = 0; k < count; ++k) {
        const bool carried = member > 0 && static_cast<int32_t>(k) == launch.carried;
        pointers_.push_back(carried ? source : row(ref_of(launch, member, k)));
      }
      note_entry(launch, member);
      run_program(*programs_[number].members[0], pointers_.data(), &target);
      std::swap(target, source);
    }
  }

  // One call after the other.
  void run_each(uint32_t number, const Launch& launch) {
    const auto count = static_cast<uint32_t>(launch.instance->inputs.size());
    for (uint32_t member = 0; member < launch.members; ++member) {
      pointers_.clear();
      for (uint32_t k = 0; k < count; ++k) pointers_.push_back(row(ref_of(launch, member, k)));
      void* target = results_[number] + static_cast<int64_t>(member) * launch.instance->output->nbytes;
      note_entry(launch, member);
      run_program(*programs_[number].members[0], pointers_.data(), &target);
    }
  }

  void run_together(uint32_t number, const Launch& launch) {
    const std::vector<void*> pointers = operands_of(launch, (launch.body ? launch.body->inputs : launch.instance->inputs).size());
    std::vector<void*> targets;
    if (!launch.body) targets.push_back(results_[number]);
    else for (int64_t at : launch.body->at) targets.push_back(results_[number] + at * launch.rows());
    note_launch(number);
    run_program(*programs_[number].together, pointers.data(), targets.data());
  }

  // The calls of a body one by one, member by member.
  void run_members(uint32_t number, const Launch& launch) {
    const Body& body = *launch.body;
    std::vector<PoolMemory> values;
    values.reserve(body.members.size());
    for (const Member& member : body.members) values.emplace_back(static_cast<size_t>(member.instance->output->nbytes));
    for (uint32_t call = 0; call < launch.members; ++call) {
      for (size_t k = 0; k < body.members.size(); ++k) {
        pointers_.clear();
        for (Ref operand : body.members[k].operands) {
          pointers_.push_back(operand >= 0 ? values[static_cast<size_t>(operand)].data()
                                           : row(ref_of(launch, call, static_cast<uint32_t>(~operand))));
        }
        void* target = values[k].data();
        note_entry(launch, call, k);
        run_program(*programs_[number].members[k], pointers_.data(), &target);
      }
      for (size_t k = 0; k < body.outputs.size(); ++k) {
        const auto nbytes = body.members[body.outputs[k]].instance->output->nbytes;
        char* target = results_[number] + body.at[k] * launch.rows() + call * nbytes;
        std::memcpy(target, values[body.outputs[k]].data(), static_cast<size_t>(nbytes));
      }
    }
  }

  // Concatenates values; contiguous ones are copied at once. `parts` is scratch memory.
  class Joined {
   public:
    Joined(void* target, std::vector<CopiedPart>& parts) : target_(static_cast<char*>(target)), parts_(parts) { parts.clear(); }

    void add(const char* begin, size_t nbytes) {
      if (parts_.empty() || begin != parts_.back().from + parts_.back().nbytes) parts_.push_back({target_, begin, 0});
      parts_.back().nbytes += nbytes;
      target_ += nbytes;
    }

    void copy(Interrupts& interrupts) const { copy_parts(parts_, interrupts); }

   private:
    char* target_;
    std::vector<CopiedPart>& parts_;
  };

  void join(uint32_t number, const Launch& launch) {
    Joined made(results_[number], parts_);
    for (uint32_t member = 0; member < launch.members; ++member) join_operands(plan_.members[launch.first_member + member], made);
    made.copy(*interrupts_);
  }

  void join_operands(uint32_t entry, Joined& made) const {
    const Entry& call = canonical_.trace.entries[entry];
    for (uint32_t operand : call.instance->traits->movement->operands) {
      const Ref ref = plan_.refs[call.first_ref + operand];
      if (ref >= 0 && plan_.merged[static_cast<size_t>(ref)]) join_operands(static_cast<uint32_t>(ref), made);
      else made.add(row(ref), static_cast<size_t>(call.instance->inputs[operand]->nbytes));
    }
  }

  // The operands of a launch in all positions. Those of all calls in a position lie contiguously: where they are, or gathered in
  // memory that the next launch reuses.
  std::vector<void*> operands_of(const Launch& launch, size_t count) {
    std::vector<void*> pointers;
    size_t nbytes = 0;
    for (uint32_t k = 0; k < count; ++k) {
      const LaunchOperand& operand = plan_.operands[launch.first_operand + k];
      char* found = row(operand.first);
      if (operand.kind == LaunchOperand::kEach && !lies_together(launch, k, found)) {
        const auto of_row = static_cast<size_t>(launch.input(k)->nbytes);
        to_gather_.push_back({nullptr, of_row, k});
        nbytes += aligned(of_row * static_cast<size_t>(launch.rows()));
      }
      pointers.push_back(found);
    }
    if (to_gather_.empty()) return pointers;
    if (scratch_.size() < nbytes) {
      scratch_ = PoolMemory();
      scratch_ = PoolMemory(with_room(nbytes));
    }
    char* next = scratch_.data();
    for (Gathered& operand : to_gather_) {
      pointers[operand.position] = operand.to = next;
      next += aligned(operand.nbytes * static_cast<size_t>(launch.rows()));
    }
    copy_rows(launch);
    return pointers;
  }

  static size_t aligned(size_t nbytes) { return (nbytes + kAlignment - 1) / kAlignment * kAlignment; }

  bool lies_together(const Launch& launch, uint32_t position, const char* first) const {
    const int64_t nbytes = launch.input(position)->nbytes;
    uint32_t member = 1;
    while (member < launch.members && row(ref_of(launch, member, position)) == first + member * nbytes) ++member;
    return member == launch.rows();
  }

  // An operand of a launch whose rows are to be gathered.
  struct Gathered {
    char* to;
    size_t nbytes;  // of a row
    uint32_t position;
  };

  struct RowCopies {
    const Run& run;
    const Launch& launch;
    int64_t rows;
  };

  // Rows of all operands, one operand after the other; contiguous ones are copied at once.
  static int64_t copy_some_rows(void** buffers, const int64_t*, int64_t begin, int64_t end) {
    const auto& [run, launch, rows] = *static_cast<const RowCopies*>(buffers[0]);
    for (int64_t k = begin; k < end;) {
      const Gathered& operand = run.to_gather_[static_cast<size_t>(k / rows)];
      const auto first = static_cast<uint32_t>(k % rows), last = static_cast<uint32_t>(std::min(rows, first + end - k));
      k += last - first;
      CopiedPart part{operand.to + first * operand.nbytes, nullptr, 0};
      for (uint32_t r = first; r < last; ++r) {
        const char* from = run.row(run.ref_of(launch, std::min(r, launch.members - 1), operand.position));
        if (from != part.from + part.nbytes || part.nbytes == 0) {
          if (part.nbytes) std::memcpy(part.to, part.from, part.nbytes);
          part = {part.to + part.nbytes, from, 0};
        }
        part.nbytes += operand.nbytes;
      }
      if (part.nbytes) std::memcpy(part.to, part.from, part.nbytes);
    }
    return 0;
  }

  // All operands at once, so that other threads take their share of many small ones.
  void copy_rows(const Launch& launch) {
    RowCopies copies{*this, launch, launch.rows()};
    int64_t nbytes = 0;
    for (const Gathered& operand : to_gather_) nbytes += static_cast<int64_t>(operand.nbytes) * copies.rows;
    copy_parallel(copy_some_rows, &copies, copies.rows * static_cast<int64_t>(to_gather_.size()), nbytes, *interrupts_);
    to_gather_.clear();
  }

  int64_t nbytes_of(uint32_t entry) const { return canonical_.trace.entries[entry].instance->output->nbytes; }

  // Counts the bytes of each launch that die together.
  void find_kept(size_t apart) {
    kept_.assign(plan_.launches.size(), 0);
    for (size_t k = apart; k < canonical_.outputs.size(); ++k) {
      const auto entry = static_cast<uint32_t>(canonical_.outputs[k]);
      if (const int32_t home = plan_.home[entry]; home >= 0) kept_[static_cast<size_t>(home)] += nbytes_of(entry);
    }
  }

  // An output is copied, so that it does not keep the rest of a batch alive, unless most of the batch dies with it.
  BufferRef output(uint32_t entry, bool goes_with_others) const {
    const auto nbytes = static_cast<size_t>(nbytes_of(entry));
    char* data = row(static_cast<Ref>(entry));
    const int32_t home = plan_.home[entry];
    if (home >= 0) {
      const BufferRef& whole = kept_results_[static_cast<size_t>(home)];
      const Launch& launch = plan_.launches[static_cast<size_t>(home)];
      const bool single = (launch.members == 1 && !launch.body) || launch.is_chain();
      const bool alone = single && plan_.members[launch.first_member + launch.members - 1] == entry;  // no equal call is merged with it
      if (alone) return whole;
      if (goes_with_others && 2 * kept_[static_cast<size_t>(home)] >= launch.nbytes()) return BufferRef(part_of_buffer(whole.get(), data, nbytes));
    }
    BufferRef made(new_buffer(nbytes));
    std::memcpy(made->data, data, nbytes);
    return made;
  }

  const CanonicalTrace& canonical_;
  const std::shared_ptr<const BatchPlan> held_;
  const BatchPlan& plan_;
  const std::vector<void*> inputs_;
  Interrupts* interrupts_ = nullptr;
  std::vector<Programs> programs_;        // by launch
  int64_t work_ = 0;                      // estimated nanoseconds
  bool has_host_ = false;
  size_t launches_ = 0, calls_ = 0;       // launches by one program, and their calls
  BufferRef arena_;
  PoolMemory scratch_;                    // of gathered operands
  std::vector<BufferRef> kept_results_;   // by launch: those that are not in the arena
  std::vector<char*> results_;            // by launch: one row for each call
  std::vector<int64_t> kept_;             // by launch: bytes that die together
  std::vector<int64_t> offsets_;          // BatchPlan::at, if some depend on integers
  const int64_t* at_;
  std::vector<void*> pointers_;
  std::vector<CopiedPart> parts_;
  std::vector<Gathered> to_gather_;       // of the next launch
};

}  // namespace

std::unique_ptr<BatchRun> BatchRun::make(const CanonicalTrace& canonical, std::shared_ptr<const BatchPlan> plan, void* const* inputs) {
  auto made = std::make_unique<Run>(canonical, std::move(plan), inputs);
  return made->find_programs() ? std::move(made) : nullptr;
}

}  // namespace twofold
