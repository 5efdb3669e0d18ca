#include "batch_plan.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "batch_agenda.h"
#include "batch_numbers.h"
#include "batch_scratch.h"
#include "cache.h"
#include "executable.h"

namespace twofold {
namespace {

constexpr uint32_t kFewest = 48;             // least number of entries of a trace that is planned
constexpr int64_t kLargeOperand = 16 << 10;  // bytes from which two uses make an operand a shared one
constexpr uint32_t kManyUses = 16;           // the same for any operand
constexpr int64_t kLargestRow = 64 << 10;    // bytes of a call from which it is not batched
constexpr size_t kShortestChain = 16;        // least number of calls of a chain; those of shorter ones are rather batched with each other
constexpr uint32_t kNone = UINT32_MAX;
constexpr uint64_t kWhole = UINT64_MAX;         // beside an op instance, no operand

}  // namespace

class BatchPlanner {
 public:
  BatchPlanner(const CanonicalTrace& canonical, void* const* leaves)
      : canonical_(canonical), trace_(canonical.trace), leaves_(leaves), plan_(std::make_shared<BatchPlan>()) {}

  bool make(RunProvenance provenance, std::shared_ptr<const BatchPlan>* out) {
    if (trace_.entries.size() < kFewest) return true;
    unite_numbers(provenance);
    FoundBodies found;
    if (settings.batching != Batching::kCallsAtOnce && !find_bodies(canonical_, plan_->refs, provenance, found)) return false;
    const size_t references = plan_->refs.size();
    take_bodies(found);
    give_keys();
    bool changed = false;
    if (!resolve_lone_bodies(found, &changed)) return false;
    if (changed) {
      plan_->refs.resize(references);
      calls_ = 0;
      keys_.clear();
      take_bodies(found);
      give_keys();
    }
    plan_->bodies_ = std::move(found.bodies);
    plan_->waiting_ = std::move(found.waiting);
    if (!divide()) return true;
    plan_->refs.shrink_to_fit();  // it grew by the operands of bodies
    *out = std::move(plan_);
    return true;
  }

 private:
  using Role = BatchScratch::Role;

  // False if few calls would be batched.
  bool divide() {
    mark_staying();
    flatten_joins();
    find_edges();
    find_chains();
    if (keys_.size() > calls_ / 2) return false;
    schedule();
    if (plan_->launches.size() > calls_ / 2) return false;
    find_positions();
    find_operands();
    return true;
  }

  void unite_numbers(RunProvenance provenance) {
    const std::vector<uint32_t> same = united_numbers(trace_, leaves_, provenance);
    for (uint32_t k = 0; k < same.size(); ++k) {
      if (same[k] != k) plan_->numbers_.push_back({k, same[k], static_cast<uint32_t>(trace_.leaves[k]->nbytes)});
    }
    plan_->refs = trace_.refs;
    for (Ref& ref : plan_->refs) {
      if (ref < 0) ref = ~static_cast<Ref>(same[static_cast<size_t>(~ref)]);
    }
  }

  // The first entry represents the call of a body, with its operands.
  void take_bodies(const FoundBodies& found) {
    by_->resize(trace_.entries.size());
    const auto n = static_cast<uint32_t>(trace_.entries.size());
    plan_->first_ref.resize(n);
    const auto behind = static_cast<uint32_t>(plan_->refs.size());
    plan_->refs.insert(plan_->refs.end(), found.operands.begin(), found.operands.end());
    auto call = found.calls.begin();
    for (uint32_t i = 0; i < n;) {
      by_->heads.push_back(i);
      by_->same[i] = by_->base[i] = static_cast<Ref>(i);
      by_->body[i] = nullptr;
      by_->alone[i] = 0;
      if (call == found.calls.end() || call->first != i) {
        plan_->first_ref[i] = trace_.entries[i].first_ref;
        by_->count[i] = trace_.entries[i].count;
        ++i;
        continue;
      }
      const Body& body = *call->body;
      const uint32_t end = i + static_cast<uint32_t>(body.members.size());
      plan_->first_ref[i] = behind + call->first_operand;
      by_->count[i] = static_cast<uint32_t>(body.inputs.size());
      by_->body[i] = &body;
      by_->alone[i] = call->alone;
      std::fill(by_->role.begin() + i, by_->role.begin() + end, Role::kInside);
      by_->role[i] = Role::kBody;
      for (uint32_t k = i + 1; k < end; ++k) {
        by_->same[k] = static_cast<Ref>(k);
        by_->base[k] = static_cast<Ref>(i);
      }
      i = end;
      ++call;
    }
  }

  // The operands of a call.
  struct Operands {
    Ref* refs;
    uint32_t count;
  };
  Operands operands_of(uint32_t i) const { return {plan_->refs.data() + plan_->first_ref[i], by_->count[i]}; }

  OpInstance* op_instance_of(uint32_t i) const { return trace_.entries[i].instance.get(); }

  // Identities and slices of an operand are no calls here; the others count as uses of their operands.
  void find_moves() {
    by_->leaf_uses.assign(trace_.leaves.size(), 0);
    for (uint32_t i : by_->heads) {
      const auto [refs, count] = operands_of(i);
      resolve(refs, count);
      if (by_->role[i] == Role::kCall) by_->role[i] = role_of(i, refs);
      if (by_->role[i] > Role::kBody) continue;
      for (uint32_t k = 0; k < count; ++k) ++(refs[k] >= 0 ? by_->uses[static_cast<size_t>(refs[k])] : by_->leaf_uses[static_cast<size_t>(~refs[k])]);
    }
  }

  // The representative of each entry.
  void resolve(Ref* refs, uint32_t count) const {
    for (uint32_t k = 0; k < count; ++k) {
      if (refs[k] >= 0) refs[k] = by_->same[static_cast<size_t>(refs[k])];
    }
  }

  Role role_of(uint32_t i, const Ref* refs) {
    const std::optional<Movement>& movement = op_instance_of(i)->traits->movement;
    if (!movement) return Role::kCall;
    if (movement->joins) return Role::kJoin;
    const uint32_t shown = movement->operands[0];
    if (movement->number >= 0) return refs[movement->number] < 0 ? Role::kPart : Role::kCall;
    if (op_instance_of(i)->inputs[shown]->nbytes != op_instance_of(i)->output->nbytes) return Role::kPart;
    by_->same[i] = refs[shown];
    return Role::kSame;
  }

  bool is_call(uint32_t i) const { return by_->role[i] <= Role::kBody; }

  bool is_shared(Ref ref, const Type* type) const {
    const uint32_t uses = ref >= 0 ? by_->uses[static_cast<size_t>(ref)] : by_->leaf_uses[static_cast<size_t>(~ref)];
    return uses >= kManyUses || (uses >= 2 && type->nbytes >= kLargeOperand);
  }

  // Calls with equal keys may be batched. Calls of the same op instance on the same operands are merged.
  void give_keys() {
    find_moves();
    Shares shares(by_->heads.size());
    for (uint32_t i : by_->heads) {
      if (by_->role[i] == Role::kSame) {
        if (by_->same[i] >= 0) by_->same[i] = by_->same[static_cast<size_t>(by_->same[i])];
        continue;
      }
      const auto [refs, count] = operands_of(i);
      resolve(refs, count);
      by_->depth[i] = 0;
      if (by_->role[i] == Role::kPart) {
        by_->base[i] = base_of(refs[op_instance_of(i)->traits->movement->operands[0]]);
        if (by_->base[i] >= 0) by_->depth[i] = by_->depth[static_cast<size_t>(by_->base[i])];
      } else if (by_->body[i]) {
        give_body_key(i, refs, count, shares);
      } else {
        give_key(i, refs, count, shares);
      }
    }
  }

  uint32_t depth_above(const Ref* refs, uint32_t count) const {
    uint32_t depth = 0;
    for (uint32_t k = 0; k < count; ++k) {
      if (refs[k] < 0) continue;
      const auto below = static_cast<size_t>(refs[k]);
      depth = std::max(depth, by_->depth[below] + (by_->role[below] != Role::kPart));
    }
    return depth;
  }

  void give_body_key(uint32_t i, const Ref* refs, uint32_t count, Shares& shares) {
    const Body& body = *by_->body[i];
    uint32_t share = shares.find(reinterpret_cast<uintptr_t>(&body), kWhole);
    const uint64_t differing = body.mask();
    for (uint32_t k = 0; k < count; ++k) {
      if (!(differing >> k & 1)) share = shares.find(share, (uint64_t{k} << 32) | static_cast<uint32_t>(refs[k]));
    }
    by_->depth[i] = depth_above(refs, count);
    for (uint32_t output : body.outputs) by_->depth[i + output] = by_->depth[i];
    calls_ += body.members.size();
    if (by_->alone[i]) enter(i, new_key());
    else join_key(i, share, shares);
  }

  // Calls of a body that could hardly ever be batched run alone if they read one another; else the body is left out,
  // since what it consists of may be batched with other calls. False with a Python error set.
  bool resolve_lone_bodies(FoundBodies& found, bool* changed) const {
    std::unordered_map<const Body*, BodyCalls> of_bodies;
    PairNumbers known(2 * found.calls.size());
    uint32_t distinct = 0;
    auto is_new = [&](uint32_t key, uint32_t depth) {
      const bool fresh = known.find(key, depth, distinct) == distinct;
      distinct += fresh;
      return fresh;
    };
    for (const BodyCall& call : found.calls) {
      BodyCalls& of_body = of_bodies[call.body];
      const uint32_t key = by_->key[call.first];
      const auto [refs, count] = operands_of(call.first);
      ++of_body.calls;
      of_body.keys += is_new(key, UINT32_MAX);
      of_body.depths += is_new(key, by_->depth[call.first]);
      of_body.chained += std::any_of(refs, refs + count, [&](Ref ref) {
        const Ref base = base_of(ref);
        return base >= 0 && by_->body[static_cast<size_t>(base)] == call.body && by_->key[static_cast<size_t>(base)] == key;
      });
    }
    for (auto& [body, own] : of_bodies) {
      if (!own.is_lone() || !own.is_chained()) continue;
      if (!runs_alone(*body, static_cast<int64_t>(own.calls), &own.alone)) return false;
      if (!own.alone) found.waiting.push_back(body->alone);
    }
    for (BodyCall& call : found.calls) call.alone = of_bodies[call.body].alone;
    std::erase_if(found.calls, [&](const BodyCall& call) { return !call.alone && of_bodies[call.body].is_lone(); });
    *changed = std::any_of(of_bodies.begin(), of_bodies.end(), [](const auto& one) { return one.second.is_lone(); });
    return true;
  }

  void join_key(uint32_t i, uint32_t share, Shares& shares) {
    if (shares.key[share] == kNone) shares.key[share] = new_key();
    enter(i, shares.key[share]);
  }

  void enter(uint32_t i, uint32_t key) {
    by_->key[i] = key;
    if (keys_[key].count++ == 0) keys_[key].first = i;
    keys_[key].depths += by_->depth[i];
  }

  void give_key(uint32_t i, const Ref* refs, uint32_t count, Shares& shares) {
    const OpInstance* instance = op_instance_of(i);
    int64_t varying = instance->output->nbytes;
    uint32_t share = shares.find(reinterpret_cast<uintptr_t>(instance), kWhole);
    uint32_t shared = 0;
    for (uint32_t k = 0; k < count; ++k) {
      if (is_shared(refs[k], instance->inputs[k])) {
        share = shares.find(share, (uint64_t{k} << 32) | static_cast<uint32_t>(refs[k]));
        ++shared;
      } else {
        varying += instance->inputs[k]->nbytes;
      }
    }
    by_->depth[i] = depth_above(refs, count);
    const bool pure = is_pure(instance);
    if (shared == count && pure) {
      if (shares.call[share] == kNone) shares.call[share] = i;
      if (shares.call[share] != i) {
        by_->role[i] = Role::kSame;
        by_->same[i] = static_cast<Ref>(shares.call[share]);
        by_->uses[shares.call[share]] += by_->uses[i];
        return;
      }
    }
    ++calls_;
    if (varying <= kLargestRow && count <= 63 && pure) return join_key(i, share, shares);
    enter(i, new_key());
    keys_.back().apart = pure ? Apart::kLarge : Apart::kHost;
  }

  // The base of a value, of which it is a slice, or itself.
  Ref base_of(Ref ref) const { return ref >= 0 ? by_->base[static_cast<size_t>(ref)] : ref; }

  void leave_key(uint32_t i) {
    Key& key = keys_[by_->key[i]];
    key.depths -= by_->depth[i];
    --key.count;
  }

  // Nested concatenations are flattened.
  void flatten_joins() {
    plan_->merged.assign(trace_.entries.size(), 0);
    for (uint32_t i : by_->heads) {
      if (by_->role[i] != Role::kJoin) continue;
      const auto [refs, count] = operands_of(i);
      for (uint32_t k = 0; k < count; ++k) {
        const auto below = static_cast<uint32_t>(refs[k]);
        if (refs[k] < 0 || by_->uses[below] != 1 || by_->stays[below] || by_->role[below] != Role::kJoin) continue;
        by_->role[below] = Role::kMerged;
        plan_->merged[below] = 1;
        leave_key(below);
        --calls_;
      }
    }
  }

  // Outputs, and values with slices, need an offset of their own.
  void mark_staying() {
    for (Ref ref : canonical_.outputs) {
      const Ref base = ref >= 0 ? base_of(by_->same[static_cast<size_t>(ref)]) : ref;
      if (base >= 0) by_->stays[static_cast<size_t>(base)] = 1;
    }
    for (uint32_t i : by_->heads) {
      if (by_->role[i] == Role::kPart && by_->base[i] >= 0) by_->stays[static_cast<size_t>(by_->base[i])] = 1;
    }
  }

  void find_edges() {
    edges_.reserve(by_->heads.size() * 4);
    for (uint32_t i : by_->heads) {
      if (is_call(i)) for_each_operand(i, [&](uint32_t from) { edges_.push_back({i, from}); });
    }
  }

  // Chains: calls of one op instance each of which is the only consumer of the one before, such as a sum of many terms.
  void find_chains() {
    std::vector<uint32_t>& uses = by_->pending;  // the scheduler counts there later
    for (const Edge& edge : edges_) ++uses[edge.from];
    for (uint32_t i : by_->heads) {
      by_->last[i] = i;
      by_->before[i] = kNone;
      if (by_->role[i] != Role::kCall) continue;
      const auto [refs, count] = operands_of(i);
      for (uint32_t k = 0; k < count && by_->before[i] == kNone; ++k) {
        const Ref ref = refs[k];
        if (ref < 0 || uses[static_cast<size_t>(ref)] != 1 || by_->stays[static_cast<size_t>(ref)]) continue;
        const auto j = static_cast<uint32_t>(ref);
        if (by_->body[j] || op_instance_of(j) != op_instance_of(i)) continue;
        if (by_->before[j] != kNone && by_->carried[j] != static_cast<int32_t>(k)) continue;
        by_->before[i] = j;
        by_->carried[i] = static_cast<int32_t>(k);
      }
    }
    for (const Edge& edge : edges_) uses[edge.from] = 0;
    std::vector<uint8_t>& continued = by_->moves;  // offsets are computed later
    for (uint32_t i : by_->heads) {
      if (by_->before[i] != kNone) continued[by_->before[i]] = 1;
    }
    for (uint32_t i : by_->heads) {
      if (by_->before[i] != kNone && !continued[i]) make_chain(i);
    }
    for (uint32_t i : by_->heads) continued[i] = 0;
  }

  void make_chain(uint32_t last) {
    std::vector<uint32_t> chain{last};
    while (by_->before[chain.back()] != kNone) chain.push_back(by_->before[chain.back()]);
    if (chain.size() < kShortestChain) return;
    std::reverse(chain.begin(), chain.end());
    uint32_t depth = 0;
    for (uint32_t i : chain) {
      leave_key(i);
      by_->last[i] = last;
      for_each_operand(i, [&](uint32_t from) {
        if (by_->last[from] != last) depth = std::max(depth, by_->depth[from] + 1);
      });
    }
    by_->key[last] = new_key();
    Key& key = keys_.back();
    key.depths = depth;
    key.count = 1;
    key.first = last;
    chains_.emplace(last, std::move(chain));
  }

  // Host functions may have side effects.
  static bool is_pure(const OpInstance* instance) { return !instance->program || !instance->program->has_host; }

  uint32_t new_key() {
    keys_.push_back(Key{});
    return static_cast<uint32_t>(keys_.size() - 1);
  }

  // Of the keys that have ready calls the one whose calls are lowest on average, measured from both ends of the trace, goes
  // first, with all that are ready: what nothing waits for lets others go before, and meets more of its like. It is an
  // agenda, as in Neubig, Goldberg and Dyer, "On-the-fly Operation Batching in Dynamic Computation Graphs" (2017).
  void schedule() {
    const size_t n = trace_.entries.size();
    auto &first_user = by_->first_user, &users = by_->users, &next = by_->next_user, &pending = by_->pending;
    auto inside = [&](const Edge& edge) { return by_->last[edge.user] == by_->last[edge.from] && edge.user != edge.from; };
    for (const Edge& edge : edges_) first_user[edge.from + 1] += !inside(edge);
    for (size_t i = 0; i < n; ++i) first_user[i + 1] += first_user[i];
    users.resize(first_user[n]);
    next.assign(first_user.begin(), first_user.end() - 1);
    for (const Edge& edge : edges_) {
      if (inside(edge)) continue;
      const uint32_t user = by_->last[edge.user];
      users[next[edge.from]++] = user;
      ++pending[user];
    }
    std::vector<uint32_t>& height = by_->height;
    for (auto edge = edges_.rbegin(); edge != edges_.rend(); ++edge) {
      if (!inside(*edge)) height[by_->last[edge->from]] = std::max(height[by_->last[edge->from]], height[by_->last[edge->user]] + 1);
    }
    for (uint32_t i : by_->heads) {
      if (is_call(i) && by_->last[i] == i) keys_[by_->key[i]].depths -= height[i];
    }
    plan_->members.reserve(by_->heads.size());
    Agenda agenda(keys_);
    auto make_ready = [&](uint32_t i) { agenda.add(by_->key[i], i); };
    for (uint32_t i : by_->heads) {
      if (is_call(i) && by_->last[i] == i && pending[i] == 0) make_ready(i);
    }
    plan_->home.assign(n, 0);
    plan_->at.assign(n, 0);
    for (std::vector<uint32_t> ready = agenda.take(); !ready.empty(); ready = agenda.take()) {
      const auto chain = chains_.find(ready[0]);
      if (chain != chains_.end()) add_chain(chain->second);
      else add_launch(ready);
      if (ready.size() == 1 && chain == chains_.end()) keys_[by_->key[ready[0]]].count_alone(plan_->alone);
      for (uint32_t i : ready) {
        for (uint32_t k = first_user[i]; k < first_user[i + 1]; ++k) {
          if (--pending[users[k]] == 0) make_ready(users[k]);
        }
      }
    }
  }

  // The offsets of values that are no calls.
  void find_positions() {
    for (uint32_t i : by_->heads) {
      if (by_->role[i] == Role::kPart) {
        find_part(i);
      } else if (by_->role[i] == Role::kSame && by_->same[i] < 0) {
        plan_->home[i] = by_->same[i];
      } else if (by_->role[i] == Role::kSame) {
        const auto same = static_cast<size_t>(by_->same[i]);
        plan_->home[i] = plan_->home[same];
        plan_->at[i] = plan_->at[same];
        by_->moves[i] = by_->moves[same];
        if (by_->moves[i]) plan_->moving.push_back({i, by_->same[i], 0, 0, -1});
      }
    }
  }

  void find_part(uint32_t i) {
    const Entry& entry = trace_.entries[i];
    const Movement& movement = *entry.instance->traits->movement;
    const Ref* refs = plan_->refs.data() + entry.first_ref;
    const Ref source = refs[movement.operands[0]];
    plan_->home[i] = source >= 0 ? plan_->home[static_cast<size_t>(source)] : source;
    plan_->at[i] = (source >= 0 ? plan_->at[static_cast<size_t>(source)] : 0) + movement.offset;
    by_->moves[i] = movement.number >= 0 || (source >= 0 && by_->moves[static_cast<size_t>(source)]);
    const int32_t number = movement.number >= 0 ? ~refs[movement.number] : -1;
    if (by_->moves[i]) plan_->moving.push_back({i, source, movement.offset, movement.step, number});
  }

  template <class Visit>
  void for_each_operand(uint32_t i, Visit visit) const {
    const auto [refs, count] = operands_of(i);
    for (uint32_t k = 0; k < count; ++k) {
      const Ref base = base_of(refs[k]);
      if (base < 0) continue;
      if (plan_->merged[static_cast<size_t>(base)]) for_each_operand(static_cast<uint32_t>(base), visit);
      else visit(static_cast<uint32_t>(base));
    }
  }

  void add_launch(const std::vector<uint32_t>& ready) {
    const auto number = static_cast<int32_t>(plan_->launches.size());
    const auto first = static_cast<uint32_t>(plan_->members.size());
    const Body* body = by_->body[ready[0]];
    plan_->launches.push_back(
        Launch{trace_.entries[ready[0]].instance, body, first, static_cast<uint32_t>(ready.size()), 0, body ? body->mask() : 0});
    Launch& launch = plan_->launches.back();
    launch.alone = by_->alone[ready[0]];
    if (launch.alone) launch.mask = 0;
    launch.joins = by_->role[ready[0]] == Role::kJoin;
    for (uint32_t row = 0; row < ready.size(); ++row) {
      const uint32_t i = ready[row];
      plan_->members.push_back(i);
      plan_->home[i] = number;
      plan_->at[i] = row * trace_.entries[i].instance->output->nbytes;
      for (size_t k = 0; body && k < body->outputs.size(); ++k) {
        const uint32_t result = i + body->outputs[k];
        plan_->home[result] = number;
        plan_->at[result] = launch.rows() * body->at[k] + row * trace_.entries[result].instance->output->nbytes;
      }
    }
  }

  void add_chain(const std::vector<uint32_t>& chain) {
    add_launch(chain);
    plan_->launches.back().carried = by_->carried[chain.back()];
    for (uint32_t i : chain) plan_->at[i] = 0;
  }

  void find_operands() {
    for (Launch& launch : plan_->launches) {
      launch.first_operand = static_cast<uint32_t>(plan_->operands.size());
      const uint32_t count = operands_of(plan_->members[launch.first_member]).count;
      for (uint32_t k = 0; k < count; ++k) {
        LaunchOperand found = operand_of(launch, k);
        if (launch.body && launch.mask >> k & 1 && (found.kind == LaunchOperand::kShared || launch.rows() != launch.members)) {
          found.kind = LaunchOperand::kEach;
        }
        if (!launch.body && found.kind != LaunchOperand::kShared) launch.mask |= Entry::mask_bit(k);
        plan_->operands.push_back(found);
      }
    }
    plan_->lay_out(edges_, canonical_.outputs);
  }

  LaunchOperand operand_of(const Launch& launch, uint32_t position) const {
    auto ref_of = [&](uint32_t row) {
      return plan_->refs[plan_->first_ref[plan_->members[launch.first_member + row]] + position];
    };
    const Ref first = ref_of(0);
    auto lies_still = [&](Ref ref) { return ref >= 0 && plan_->home[static_cast<size_t>(ref)] >= 0 && !by_->moves[static_cast<size_t>(ref)]; };
    const int64_t nbytes = launch.input(position)->nbytes;
    bool shared = true, rows = lies_still(first);
    for (uint32_t row = 1; row < launch.members && (shared || rows); ++row) {
      const Ref ref = ref_of(row);
      shared = shared && ref == first;
      rows = rows && lies_still(ref) && plan_->home[static_cast<size_t>(ref)] == plan_->home[static_cast<size_t>(first)] &&
             plan_->at[static_cast<size_t>(ref)] == plan_->at[static_cast<size_t>(first)] + row * nbytes;
    }
    return {shared ? LaunchOperand::kShared : rows ? LaunchOperand::kRows : LaunchOperand::kEach, first};
  }

  const CanonicalTrace& canonical_;
  const Trace& trace_;
  void* const* leaves_;
  std::shared_ptr<BatchPlan> plan_;
  ScratchLoan by_;
  std::vector<Edge> edges_;  // in the order of their consumers
  size_t calls_ = 0;         // that are to run
  std::unordered_map<uint32_t, std::vector<uint32_t>> chains_;  // by last entry
  std::vector<Key> keys_;
};

bool BatchPlan::make(const CanonicalTrace& canonical, void* const* leaves, RunProvenance provenance,
                     std::shared_ptr<const BatchPlan>* out) {
  return BatchPlanner(canonical, leaves).make(provenance, out);
}

bool BatchPlan::is_dated() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [](const auto& family) { return family->is_ready(); });
}

bool BatchPlan::holds(void* const* leaves) const {
  return std::all_of(numbers_.begin(), numbers_.end(), [leaves](const Number& number) {
    return std::memcmp(leaves[number.leaf], leaves[number.same_as], number.nbytes) == 0;
  });
}

}  // namespace twofold
