#include <Python.h>

#include "body.h"

#include <algorithm>
#include <unordered_map>

#include "cache.h"
#include "executable.h"
#include "owned.h"
#include "pair_numbers.h"

namespace twofold {
namespace {

constexpr int64_t kWorthPlanning = 2048;  // calls of a body: about what planning its program costs
constexpr int64_t kWorthPlanningAlone = 256;
constexpr uint64_t kWorthKeeping = 32;       // calls before which only a counter is kept of a body
constexpr size_t kMostMembers = 96;
constexpr size_t kMostInputs = 48;
constexpr size_t kFewestCalls = 2;           // of operations, in a body
constexpr int64_t kLargestRow = 64 << 10;    // bytes of a value of one call
constexpr int64_t kLargeOperand = 16 << 10;  // bytes from which two uses make a value a shared operand
constexpr uint32_t kManyUses = 16;           // the same for any value

Cache<Body>& bodies() {
  static auto& cache = *[] {
    auto* made = new Cache<Body>("bodies", 1);
    add_holder([] { return bodies().drop_oldest(); });
    return made;
  }();
  return cache;
}

// Counters of bodies of which nothing else is kept, as most bodies of dynamic programs never repeat.
class CallCounts {
 public:
  // Adds to the counter of the body with this digest, and returns it.
  uint64_t add(uint64_t digest, uint64_t calls) {
    auto& [known, count] = slots_[digest % kSlots];
    if (std::exchange(known, digest) != digest) count = 0;
    return count += calls;
  }

 private:
  static constexpr size_t kSlots = 8191;
  std::vector<std::pair<uint64_t, uint64_t>> slots_ = std::vector<std::pair<uint64_t, uint64_t>>(kSlots);
};
auto& call_counts = *new CallCounts();

// Asks Python for a program for `count` calls, or of one call alone, if there were enough; false with a Python error set.
bool ask(const Body& body, const std::shared_ptr<BatchFamily>& family, int64_t calls, int64_t worth, int64_t count) {
  const BatchFamily::Wanted wanted = family->wanted(calls, worth);
  return wanted == BatchFamily::Wanted::kNothing || ask_for_batch(family, wanted, body.members, body.outputs, body.inputs, count);
}

class BodyFinder {
 public:
  BodyFinder(const CanonicalTrace& canonical, const std::vector<Ref>& refs, RunProvenance provenance)
      : canonical_(canonical), trace_(canonical.trace), refs_(refs), provenance_(provenance) {}

  bool find(FoundBodies& found) {
    count_uses();
    find_slices();
    divide();
    separate();
    mark_outputs();
    if (cut_chains()) mark_outputs();
    for (size_t k = 0; k + 1 < first_.size(); ++k) {
      const size_t operands = found.operands.size();
      if (!is_body_[k] || !make(first_[k], first_[k + 1], found)) found.operands.resize(operands);
    }
    for (const Kind& kind : kinds_) {
      if (!kind.body) continue;
      found.bodies.push_back(kind.body);
      BatchFamily& family = *kind.body->family;
      if (family.is_ready()) continue;
      if (!ask(*kind.body, kind.body->family, kind.calls, kWorthPlanning, std::max<int64_t>(2, kind.calls))) return false;
      if (!family.is_ready()) found.waiting.push_back(kind.body->family);
    }
    std::erase_if(found.calls, [](const BodyCall& call) { return !call.body->family->is_ready(); });
    std::erase_if(found.bodies, [](const BodyRef& body) { return !body->family->is_ready(); });
    return true;
  }

 private:
  void count_uses() {
    of_entry_.assign(trace_.entries.size(), 0);
    of_leaf_.assign(trace_.leaves.size(), 0);
    for (Ref ref : refs_) ++(ref >= 0 ? of_entry_[static_cast<size_t>(ref)] : of_leaf_[static_cast<size_t>(~ref)]);
  }

  bool is_shared(Ref ref, const Type* type) const {
    const uint32_t uses = ref >= 0 ? of_entry_[static_cast<size_t>(ref)] : of_leaf_[static_cast<size_t>(~ref)];
    return uses >= kManyUses || (uses >= 2 && type->nbytes >= kLargeOperand);
  }

  // The call of a line that makes slices at an index.
  uint32_t slicing_call(uint32_t i, const CodePosition& line) {
    const uint64_t where = uint64_t{line.code} << 32 | line.offset;
    return slicing_numbers_.find(trace_.entries[i].instance->id, where, static_cast<uint32_t>(slicing_.size()));
  }

  // Finds calls that make slices at another index from time to time, such as one row of a table for each word.
  void find_slices() {
    uint32_t location = 0;
    CodePosition line{};
    for (uint32_t i = 0; i < trace_.entries.size(); ++i) {
      const std::optional<Movement>& movement = trace_.entries[i].instance->traits->movement;
      if (!movement || movement->number < 0) continue;
      const Provenance here = provenance_[i];
      if (here.origin() != location) line = code_position(location = here.origin());
      const Ref number = refs_[trace_.entries[i].first_ref + static_cast<uint32_t>(movement->number)];
      const uint32_t call = slicing_call(i, line);
      if (call == slicing_.size()) slicing_.push_back({number, false});
      slicing_[call].varies |= slicing_[call].number != number;
    }
  }

  // Whether an entry of the line may be a member of a segment from `first` on: a small computation, or a slice. The index of a
  // slice of what another segment computes must not vary, even if another call has the same.
  bool fits(uint32_t i, uint32_t first, const CodePosition& line) {
    const Entry& entry = trace_.entries[i];
    const OpInstance* s = entry.instance;
    if (s->output->nbytes > kLargestRow || entry.count == 0 || entry.count > 8 || (s->program && s->program->has_host)) return false;
    const Ref* refs = refs_.data() + entry.first_ref;
    if (const std::optional<Movement>& movement = s->traits->movement) {
      if (movement->number < 0) return true;
      if (!is_shared(refs[movement->number], s->inputs[static_cast<size_t>(movement->number)])) return false;
      const uint32_t call = slicing_call(i, line);
      return refs[movement->operands[0]] >= static_cast<Ref>(first) || (call < slicing_.size() && !slicing_[call].varies);
    }
    for (uint32_t k = 0; k < entry.count; ++k) {
      const Type* type = s->inputs[k];
      if (type->nbytes > kLargestRow && !is_shared(refs[k], type)) return false;
    }
    return true;
  }

  // Whether the segment already has a call of the same op instance on the same weight: then one line called a function
  // of the package again, which has a loop of its own or is called in one.
  bool comes_again(uint32_t i) {
    const Entry& entry = trace_.entries[i];
    const auto piece = static_cast<uint32_t>(first_.size());
    bool again = false;
    for (uint32_t k = 0; k < entry.count; ++k) {
      const Ref ref = refs_[entry.first_ref + k];
      if (ref >= 0 || entry.instance->inputs[k]->shape.empty() || !is_shared(ref, entry.instance->inputs[k])) continue;
      auto& [instance, last] = weights_[static_cast<size_t>(~ref)];
      again = again || (instance == entry.instance->id && last == piece);
      instance = entry.instance->id;
      last = piece;
    }
    return again;
  }

  void begin_piece(uint32_t i, bool may) {
    first_.push_back(i);
    is_body_.push_back(may);
    comes_again(i);
  }

  // Splits the trace at activations of functions and at iterations of loops.
  void divide() {
    static Operation* const accumulate = operation_of(hooks.accumulate);
    const auto n = static_cast<uint32_t>(trace_.entries.size());
    CodePosition last{}, site{};
    uint32_t location = 0;  // of the site
    bool backward = false;
    piece_.resize(n);
    same_line_.assign(n, 0);
    weights_.assign(trace_.leaves.size(), {});
    for (uint32_t i = 0; i < n; ++i) {
      const Provenance here = provenance_[i];
      if (here.origin() != location) site = code_position(location = here.origin());
      const bool differentiates = here.forward != 0;
      bool goes_on = i > 0 && is_body_.back() && i - first_.back() < kMostMembers && differentiates == backward;
      goes_on = goes_on && fits(i, first_.back(), site);
      // Sums of cotangents belong to the body of the value.
      const bool added = goes_on && differentiates && trace_.entries[i].instance->operation == accumulate;
      if (goes_on && !added) {
        goes_on = site.code == last.code && site.caller == last.caller && (differentiates ? site.offset <= last.offset : site.offset >= last.offset);
      }
      same_line_[i] = goes_on && site.offset == last.offset;
      if (goes_on) goes_on = !comes_again(i) || !same_line_[i];
      if (!goes_on) begin_piece(i, fits(i, i, site));
      if (!added) last = site;
      backward = differentiates;
    }
    first_.push_back(n);
  }

  // Divides pieces where a line goes on with what reads nothing before it in the piece, as when it calls the same again on
  // another sample: as one body the second call would wait for the first.
  void separate() {
    std::vector<uint32_t> first;
    std::vector<uint8_t> is_body;
    for (size_t k = 0; k + 1 < first_.size(); ++k) {
      const size_t before = first.size();
      uint32_t lowest = first_[k + 1];  // of what is read in the piece from an entry on
      for (uint32_t i = first_[k + 1]; i-- > first_[k];) {
        const Entry& entry = trace_.entries[i];
        for (uint32_t input = 0; input < entry.count; ++input) {
          const Ref ref = refs_[entry.first_ref + input];
          if (ref >= static_cast<Ref>(first_[k])) lowest = std::min(lowest, static_cast<uint32_t>(ref));
        }
        if (i == first_[k] || (lowest >= i && same_line_[i])) first.push_back(i);
      }
      std::reverse(first.begin() + static_cast<ptrdiff_t>(before), first.end());
      is_body.resize(first.size(), is_body_[k]);
    }
    set_pieces(std::move(first), std::move(is_body));
  }

  void set_pieces(std::vector<uint32_t> first, std::vector<uint8_t> is_body) {
    for (size_t k = 0; k < first.size(); ++k) {
      const uint32_t end = k + 1 < first.size() ? first[k + 1] : static_cast<uint32_t>(piece_.size());
      std::fill(piece_.begin() + first[k], piece_.begin() + end, static_cast<uint32_t>(k));
    }
    first.push_back(static_cast<uint32_t>(piece_.size()));
    first_ = std::move(first);
    is_body_ = std::move(is_body);
  }

  template <class Visit>
  void for_each_operand(uint32_t i, Visit visit) const {
    const Entry& entry = trace_.entries[i];
    for (uint32_t k = 0; k < entry.count; ++k) {
      if (const Ref ref = refs_[entry.first_ref + k]; ref >= 0) visit(static_cast<uint32_t>(ref));
    }
  }

  // Whether a piece that reads another is of the same line of the program.
  bool follows(uint32_t user, uint32_t from) const { return line_[user] != 0 && line_[user] == line_[from]; }

  // Pieces of one line each of which reads the one before it, such as the steps of a recurrent network, can hardly be
  // batched. What they begin with and does not depend on the step before, and what they end with that the step behind does
  // not need, is the same for all steps: it becomes pieces of its own. Whether there are any.
  bool cut_chains() {
    const size_t pieces = is_body_.size();
    std::unordered_map<uint64_t, Line> lines;
    for (size_t p = 0; p < pieces; ++p) {
      if (line_[p]) lines[line_[p]].add(level_[p]);
    }
    if (std::none_of(lines.begin(), lines.end(), [](const auto& one) { return one.second.is_chain(); })) return false;
    std::vector<uint32_t> height(pieces), needed(trace_.entries.size());  // how many pieces of its line depend on a piece, and on an entry
    std::vector<uint8_t> feeds(trace_.entries.size());  // whether a later piece of its line needs it
    std::vector<uint32_t> first;
    std::vector<uint8_t> is_body;
    for (auto p = static_cast<uint32_t>(pieces); p-- > 0;) {
      const uint32_t begin = first_[p], end = first_[p + 1];
      for (uint32_t i = begin; i < end; ++i) height[p] = std::max(height[p], needed[i]);
      for (uint32_t i = begin; i < end; ++i) {
        for_each_operand(i, [&](uint32_t from) {
          const uint32_t q = piece_[from];
          if (q != p) needed[from] = std::max(needed[from], height[p] + follows(p, q));
        });
      }
      const bool is_chain = line_[p] && lines[line_[p]].is_chain();
      const uint32_t tail = is_chain && height[p] ? tail_of(begin, end, height[p], needed, feeds) : end;
      const uint32_t core = is_chain && level_[p] ? core_of(p) : begin;
      for (const uint32_t at : {tail > core ? tail : end, core, begin}) {
        if (at == end || (!first.empty() && first.back() == at)) continue;
        first.push_back(at);
        is_body.push_back(is_body_[p]);
      }
    }
    std::reverse(first.begin(), first.end());
    std::reverse(is_body.begin(), is_body.end());
    set_pieces(std::move(first), std::move(is_body));
    return true;
  }

  // The first entry of the end of a piece that no later piece of its line needs.
  uint32_t tail_of(uint32_t begin, uint32_t end, uint32_t height, const std::vector<uint32_t>& needed, std::vector<uint8_t>& feeds) const {
    uint32_t tail = end;
    for (uint32_t i = end; i-- > begin;) {
      feeds[i] |= needed[i] == height;
      if (!feeds[i]) {
        if (tail == i + 1) tail = i;
        continue;
      }
      for_each_operand(i, [&](uint32_t from) { if (from >= begin) feeds[from] = 1; });
    }
    return tail;
  }

  // The first entry of a piece that depends on the piece of its line before.
  uint32_t core_of(uint32_t p) const {
    for (uint32_t i = first_[p]; i < first_[p + 1]; ++i) {
      bool depends = false;
      for_each_operand(i, [&](uint32_t from) {
        const uint32_t q = piece_[from];
        depends = depends || (q != p && level_[q] + follows(p, q) == level_[p]);
      });
      if (depends) return i;
    }
    return first_[p];
  }

  // Which entries are live out of their pieces, and how many pieces of its line each piece depends on.
  void mark_outputs() {
    const size_t pieces = is_body_.size();
    outside_.assign(trace_.entries.size(), 0);
    line_.resize(pieces);
    level_.assign(pieces, 0);
    for (uint32_t p = 0; p < pieces; ++p) {
      const Provenance origin = provenance_[first_[p]];
      line_[p] = is_body_[p] ? uint64_t{origin.origin()} << 1 | (origin.forward != 0) : 0;
      for (uint32_t i = first_[p]; i < first_[p + 1]; ++i) {
        for_each_operand(i, [&](uint32_t from) {
          const uint32_t q = piece_[from];
          if (q == p) return;
          outside_[from] = 1;
          level_[p] = std::max(level_[p], level_[q] + follows(p, q));
        });
      }
    }
    for (Ref ref : canonical_.outputs) {
      if (ref >= 0) outside_[static_cast<size_t>(ref)] = 1;
    }
  }

  // Adds entries as the call of a body; false if they are none, and then only operands were added.
  bool make(uint32_t first, uint32_t end, FoundBodies& found) {
    size_t computing = 0;
    for (uint32_t i = first; i < end && computing < kFewestCalls; ++i) computing += !trace_.entries[i].instance->traits->movement;
    if (computing < kFewestCalls) return false;
    Digest digest;
    codes_.clear();
    uint64_t mask = 0;
    bool any_outside = false;
    const size_t first_operand = found.operands.size();
    for (uint32_t i = first; i < end; ++i) {
      const Entry& entry = trace_.entries[i];
      digest.add(reinterpret_cast<uintptr_t>(entry.instance.get()));
      any_outside = any_outside || outside_[i];
      for (uint32_t k = 0; k < entry.count; ++k) {
        const Ref ref = refs_[entry.first_ref + k];
        Ref code = ref - static_cast<Ref>(first);
        if (ref < static_cast<Ref>(first)) {
          const auto begin = found.operands.begin() + static_cast<ptrdiff_t>(first_operand);
          const auto known = std::find(begin, found.operands.end(), ref);
          const auto number = static_cast<size_t>(known - begin);
          if (known == found.operands.end()) {
            if (number == kMostInputs) return false;
            if (!is_shared(ref, entry.instance->inputs[k])) mask |= Entry::mask_bit(number);
            found.operands.push_back(ref);
          }
          code = ~static_cast<Ref>(number);
        }
        codes_.push_back(code);
        digest.add(static_cast<uint32_t>(code) | uint64_t{outside_[i]} << 32);
      }
    }
    if (mask == 0 || !any_outside) return false;
    digest.add(mask);
    const auto [low, high] = digest.words();
    const uint32_t number = numbers_.find(low, high, static_cast<uint32_t>(kinds_.size()));
    if (number == kinds_.size()) kinds_.push_back({bodies().find(digest.bytes()), 0});
    Kind& kind = kinds_[number];
    ++kind.calls;
    if (!kind.body && (call_counts.add(low, 1) >= kWorthKeeping || settings.batching == Batching::kAtOnce)) {
      kind.body = describe(first, end, found.operands.data() + first_operand, found.operands.size() - first_operand, mask);
      bodies().insert(digest.bytes(), kind.body);
      bodies().bound();
    }
    if (!kind.body) return false;
    found.calls.push_back({kind.body.get(), first, static_cast<uint32_t>(first_operand)});
    return true;
  }

  BodyRef describe(uint32_t first, uint32_t end, const Ref* operands, size_t count, uint64_t mask) const {
    auto body = std::make_shared<Body>(mask);
    const Ref* code = codes_.data();
    for (uint32_t i = first; i < end; ++i) {
      const Entry& entry = trace_.entries[i];
      body->members.push_back({entry.instance, std::vector<Ref>(code, code + entry.count)});
      code += entry.count;
      if (!outside_[i]) continue;
      body->outputs.push_back(i - first);
      body->at.push_back(body->nbytes);
      body->nbytes += entry.instance->output->nbytes;
    }
    for (size_t k = 0; k < count; ++k) body->inputs.push_back(trace_.type_of_ref(operands[k]));
    return body;
  }

  // The pieces of a line: how many there are, and that of them that depends on most others.
  struct Line {
    uint32_t pieces = 0, deepest = 0;

    void add(uint32_t level) {
      ++pieces;
      deepest = std::max(deepest, level);
    }
    bool is_chain() const { return deepest > 1 && 2 * pieces < 3 * (deepest + 1); }
  };

  // A body of calls of this trace; null if it was not called often enough.
  struct Kind {
    BodyRef body;
    int64_t calls;
  };

  // A call of a line that makes slices at an index.
  struct Slicing {
    Ref number;  // the first index
    bool varies;
  };

  const CanonicalTrace& canonical_;
  const Trace& trace_;
  const std::vector<Ref>& refs_;
  RunProvenance provenance_;
  PairNumbers slicing_numbers_{64};
  std::vector<Slicing> slicing_;              // by number
  std::vector<uint32_t> of_entry_, of_leaf_;  // uses
  std::vector<uint32_t> first_;               // by segment: its first entry, and the end
  std::vector<uint8_t> is_body_;              // by segment: whether its entries may be members
  std::vector<uint32_t> piece_;               // by entry
  std::vector<uint8_t> same_line_;            // by entry: whether the one before it was recorded by the same call in the program
  std::vector<std::pair<uint32_t, uint32_t>> weights_;  // by trace input: the op instance that read it last, and in which segment
  std::vector<uint64_t> line_;                // by segment: where it was recorded; 0 if it is no body
  std::vector<uint32_t> level_;               // by segment
  std::vector<uint8_t> outside_;              // by entry: whether it is live out of its segment
  std::vector<Ref> codes_;
  PairNumbers numbers_{64};                   // bodies, by structure
  std::vector<Kind> kinds_;                   // by number
};

}  // namespace

size_t Body::memory() const {
  size_t total = sizeof *this + memory_of(members) + memory_of(inputs) + memory_of(outputs) + memory_of(at) + family->memory() + alone->memory();
  for (const Member& member : members) total += memory_of(member.operands);
  return total;
}

bool find_bodies(const CanonicalTrace& canonical, const std::vector<Ref>& refs, RunProvenance provenance, FoundBodies& found) {
  return BodyFinder(canonical, refs, provenance).find(found);
}

bool body_program(const Body& body, int64_t count, ProgramRef* out) {
  *out = body.family->program_for(count);
  if (*out) return true;
  if (!ask(body, body.family, count, kWorthPlanning, count)) return false;
  *out = body.family->program_for(count);
  return true;
}

bool runs_alone(const Body& body, int64_t calls, bool* ready) {
  BatchFamily& alone = *body.alone;
  if (!alone.is_ready() && !ask(body, body.alone, calls, kWorthPlanningAlone, 1)) return false;
  *ready = alone.is_ready();
  return true;
}

}  // namespace twofold
