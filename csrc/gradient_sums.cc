// Sums over calls: cotangents that are products over the rows of calls, scatter-adds, or sums of rows are kept as terms until
// the sum is needed, which is one product, scatter-add or sum over the rows of all calls.
#include <Python.h>

#include <algorithm>

#include "owned.h"
#include "tensor.h"
#include "backward_pass.h"

namespace twofold {

namespace {

// The operation of a variant of a gradient, such as its rows or its accumulation; null with a Python error set.
Operation* kindred_of_gradient(PyObject* maker) {
  const Owned operation(PyObject_CallNoArgs(maker));
  return operation ? operation_of(operation.object) : nullptr;
}

// Order of summation: products, then rows of tables, then rows, then values.
int rank_of(const Term& term) {
  const int32_t kind = term.kind();
  return kind == Form::kProduct || kind == Form::kChain ? 0 : kind == Form::kTable ? 1 : kind == Form::kRows ? 2 : 3;
}

constexpr size_t kFew = 4;  // largest number of values that are added one by one rather than concatenated
constexpr size_t kJoined = 16;  // most inputs of one concatenation

// How many of the values that are left one concatenation joins: one of few numbers, so that other numbers of calls share its
// op instances.
size_t joined_of(size_t left) { return left >= kJoined ? kJoined : left > kJoined / 2 ? kJoined / 2 : left; }

}  // namespace

// The target of terms of the cotangent of a reference; none if no gradient flows there. False with a Python error set.
bool BackwardPass::find_destination(Scope& scope, Ref target, Destination* destination) {
  if (target >= 0) {
    *destination = Destination{&scope, target, nullptr};
    return true;
  }
  size_t number = static_cast<size_t>(~target);
  ValueRef leaf = scope.saved ? scope.saved->leaves[number].value : recorder_.leaves()[number].value;
  return find_leaf(leaf.get(), target, destination);
}

// The position of the visited call in all traces.
std::pair<uint64_t, uint32_t> BackwardPass::order_of(const Visit& visit) {
  return {visit.scope.saved ? visit.scope.saved->order : UINT64_MAX, static_cast<uint32_t>(visit.index)};
}

std::vector<Term>& BackwardPass::terms_of(const Destination& destination) {
  return destination.scope ? destination.scope->terms[destination.index] : sum_of(destination).terms;
}

// Keeps the gradient of an input as a term.
bool BackwardPass::keep_factors(const Visit& visit, const Gradient& gradient, uint32_t k, const std::vector<Ref>& refs,
                                const Destination& destination) {
  Term term;
  term.call = visit.entry.instance;
  term.input = k;
  term.gradient = &gradient;
  term.order = order_of(visit);
  term.origin = origin_of(visit.scope, static_cast<Ref>(visit.index));
  for (size_t i = 0; i < refs.size(); ++i) {
    const bool has_sides = term.kind() == Form::kProduct || term.kind() == Form::kTable;
    if (has_sides && gradient.used[i] == gradient.form.left) term.left = refs[i];
    if (term.kind() != Form::kChain && gradient.used[i] == gradient.form.right) term.right = refs[i];
  }
  if (term.kind() == Form::kChain) term.inputs = refs;
  if (term.kind() == Form::kRows) {
    term.is_row = gradient.form.right == -1 && type_of(term.right) == gradient.instance->output;
    term.inputs = refs;
    if (term.is_row && is_stepped_ && !record_alone(term, &term.right)) return false;
    if (term.is_row && (is_stepped_ || is_internal(destination))) term.inputs.clear();
  }
  terms_of(destination).push_back(std::move(term));
  return true;
}

// Whether the cotangent of an entry is needed by hooks or retain_grad.
bool BackwardPass::is_captured(const Scope& scope, size_t index) const {
  if (!scope.saved) {
    const Value* value = recorder_.live(static_cast<Ref>(index));
    return value && value->slot && !value->is_leaf;
  }
  return watched_at(scope.saved->watched, index) || is_target(scope, static_cast<Ref>(index));
}

// Moves the products in the cotangent of a transpose to the matrix.
bool BackwardPass::pass_through_transpose(Scope& scope, size_t index, std::vector<Term>& terms) {
  const Entry& entry = scope.saved ? scope.saved->trace->trace.entries[index] : recorder_.entry(index);
  if (entry.count != 1 || !entry.flows_to(0) || is_captured(scope, index)) return true;
  const Ref input = (scope.saved ? scope.saved->trace->trace.inputs(entry) : recorder_.inputs(entry))[0];
  if (!scope.needed.empty() && !(scope.needed[index] && leads_to_target(scope, input))) return true;
  const GradientPlan* plan = found([&] { return gradient_plan_of(entry.instance, entry.gradient_mask); });
  const Gradient* gradient = plan ? plan->at(0) : nullptr;
  if (!gradient) return false;
  if (gradient->form.kind != Form::kTranspose) return true;
  auto rest = std::stable_partition(terms.begin(), terms.end(), [](const Term& term) { return term.kind() != Form::kProduct; });
  std::vector<Term> passed(rest, terms.end());
  terms.erase(rest, terms.end());
  Destination destination;
  if (!find_destination(scope, input, &destination)) return false;
  if (!destination.reached() || passed.empty()) return true;
  if (destination.slot) sum_of(destination).dense = true;
  std::vector<Term>& above = terms_of(destination);
  for (Term& term : passed) {
    std::swap(term.left, term.right);
    term.transposed = !term.transposed;
    above.push_back(std::move(term));
  }
  return true;
}

// Keeps the gradient of a slice, so that those of all slices of a value are one call.
void BackwardPass::keep_block(const Visit& visit, const Gradient& gradient, const std::vector<Ref>& refs, const Destination& destination) {
  Term term;
  term.call = visit.entry.instance;
  term.gradient = &gradient;
  term.inputs = refs;
  term.origin = origin_of(visit.scope, static_cast<Ref>(visit.index));
  destination.scope->blocks[destination.index].push_back(std::move(term));
}

// Adds the blocks that the cotangent of an entry begins with, in the order of their arrival.
bool BackwardPass::settle_blocks(Scope& scope, Ref index) {
  if (scope.blocks.empty()) return true;
  static Operation* add_blocks = nullptr;
  if (!add_blocks && !(add_blocks = kindred_of_gradient(hooks.pullback_blocks))) return false;
  auto found = scope.blocks.find(index);
  if (found == scope.blocks.end()) return true;
  const std::vector<Term> blocks = std::move(found->second);
  scope.blocks.erase(found);
  Ref& sum = scope.cotangents[static_cast<size_t>(index)];
  std::vector<Ref> inputs;
  for (size_t first = 0, last; first < blocks.size(); first = last) {
    OpInstance* const instance = blocks[first].gradient->instance.get();
    inputs.clear();
    for (last = first; last < blocks.size() && last - first < kJoined && blocks[last].gradient->instance.get() == instance; ++last) {
      inputs.insert(inputs.end(), blocks[last].inputs.begin(), blocks[last].inputs.end());
    }
    if (last == first + 1 || (sum != kNoRef && blocks[first].inputs.size() == 1)) {  // one input does not tell a sum from a block
      Ref made;
      last = first + 1;
      if (!record_alone(blocks[first], &made) || !add(&sum, made, origin_of(scope, index))) return false;
      continue;
    }
    if (sum != kNoRef) inputs.push_back(sum);
    if (!call_with(add_blocks, instance->attributes.get(), inputs.data(), inputs.size(), blocks[first].origin, &sum)) return false;
  }
  return true;
}

// Sums the terms of an entry to its cotangent.
bool BackwardPass::settle(Scope& scope, size_t index) {
  auto found = scope.terms.find(static_cast<Ref>(index));
  if (found == scope.terms.end()) return true;
  std::vector<Term> terms = std::move(found->second);
  scope.terms.erase(found);
  if (!pass_through_transpose(scope, index, terms)) return false;
  const Origin origin = terms.empty() ? Origin{} : terms.front().origin;
  Ref sum = kNoRef;
  return add_terms(&sum, std::move(terms)) && (sum == kNoRef || add(&scope.cotangents[index], sum, origin));
}

// Accumulates into `.grad`; the gradient of the pass alone is computed, too, if hooks read it.
bool BackwardPass::settle_slot(Sum& sum) {
  std::vector<Term> terms = std::exchange(sum.terms, {});
  if (terms.empty()) return true;
  if (sum.total == kNoRef) {
    auto [start, fresh] = starts_.try_emplace(sum.slot, kNoRef);
    const uint64_t stamp = recorder_.stamp();
    if (fresh && !(find_start(sum.slot, sum.type, &start->second) && is_open(stamp))) return false;
    sum.start = sum.total = start->second;
  }
  const bool is_seen = sum.total == kNoRef || each_seen_ || sum.slot->has_hooks();
  if (is_seen && !add_terms(&sum.cotangent, sum.total == kNoRef ? std::move(terms) : terms)) return false;
  return sum.total == kNoRef || add_terms(&sum.total, std::move(terms));
}

bool BackwardPass::settle_slots() {
  return std::all_of(sums_.begin(), sums_.end(), [&](Sum& sum) { return settle_slot(sum); });
}

// The slots of leaves with the first entry that reads each, in ascending order: once the pass has visited it, nothing is
// added to a slot any more, and what its terms hold need not wait for the end. None where earlier traces may add to them, nor
// where the pass is differentiated: the order of its calls is that of sums in the next pass, and must not depend on what was read.
std::vector<std::pair<size_t, GradientSlot*>> BackwardPass::first_readers(const Scope& scope) const {
  std::vector<std::pair<size_t, GradientSlot*>> found;
  if (scope.saved || request_.create) return found;
  std::unordered_set<const GradientSlot*> seen;
  for (size_t i = 0; i < scope.cotangents.size(); ++i) {
    const Entry& entry = recorder_.entry(i);
    for (uint32_t k = 0; entry.requires_grad() && k < entry.count; ++k) {
      const Ref ref = recorder_.inputs(entry)[k];
      const Value* leaf = ref < 0 && entry.flows_to(k) ? recorder_.leaves()[static_cast<size_t>(~ref)].value.get() : nullptr;
      if (!leaf || !leaf->requires_grad) continue;
      if (!leaf->is_leaf) return {};
      if (leaf->slot && seen.insert(leaf->slot).second) found.emplace_back(i, leaf->slot);
    }
  }
  return found;
}

// Adds terms to a sum, by rank, and those of one rank in the order of the calls, the reverse of their arrival.
bool BackwardPass::add_terms(Ref* sum, std::vector<Term> terms) {
  std::reverse(terms.begin(), terms.end());
  const auto goes_before = [](const Term& a, const Term& b) {
    const int left = rank_of(a), right = rank_of(b);
    return left != right ? left < right : a.order < b.order;
  };
  if (!std::is_sorted(terms.begin(), terms.end(), goes_before)) std::stable_sort(terms.begin(), terms.end(), goes_before);
  for (auto first = terms.begin(), last = first; first != terms.end(); first = last) {
    const int rank = rank_of(*first);
    last = std::find_if(first, terms.end(), [rank](const Term& term) { return rank_of(term) != rank; });
    if (!(rank == 0 ? add_products(sum, {first, last}) : add_group(sum, {first, last}))) return false;
  }
  return true;
}

// Products are concatenated if the rows of both sides are values; others accumulate into the sum one by one.
bool BackwardPass::add_products(Ref* sum, std::span<const Term> terms) {
  static Operation* go_on = nullptr;
  size_t first = 0;  // of those that are concatenated
  for (size_t k = 0; k < terms.size(); ++k) {
    const Term& term = terms[k];
    if (term.kind() == Form::kProduct) continue;
    if (!add_group(sum, terms.subspan(first, k - first))) return false;
    first = k + 1;
    if (*sum == kNoRef) {
      if (!record_alone(term, sum)) return false;
      continue;
    }
    if (!go_on && !(go_on = kindred_of_gradient(hooks.pullback_chain))) return false;
    std::vector<Ref> inputs = term.inputs;
    inputs.push_back(*sum);
    if (!call_with(go_on, term.gradient->instance->attributes, inputs.data(), inputs.size(), term.origin, sum)) return false;
  }
  return add_group(sum, terms.subspan(first));
}

// For terms of one kind, one call on the rows of all in the order of the trace, which accumulates into the sum.
bool BackwardPass::add_group(Ref* sum, std::span<const Term> terms) {
  if (terms.empty()) return true;
  const int32_t kind = terms[0].kind();
  const bool goes_on = *sum != kNoRef;
  if (!goes_on && terms.size() == 1 && !terms[0].transposed) return record_alone(terms[0], sum);
  const auto is_row = [](const Term& term) { return term.is_row; };
  const bool few_rows = kind == Form::kRows && terms.size() <= kFew && std::all_of(terms.begin(), terms.end(), is_row);
  if (kind == Form::kPlain || few_rows) return add_one_by_one(sum, terms);
  static Operation* const product = operation_of(hooks.row_product);
  static Operation* const table = operation_of(hooks.row_table);
  static Operation* const rows_sum = operation_of(hooks.row_sum);
  Operation* const operation = kind == Form::kProduct ? product : kind == Form::kTable ? table : rows_sum;
  const Type* whole = terms[0].call->inputs[terms[0].input];  // a transposed matrix has only products
  std::vector<Ref> inputs;
  if (!rows_of_group(terms, &inputs)) return false;
  if (goes_on) inputs.push_back(*sum);
  return call(operation, kind == Form::kProduct ? std::vector<int64_t>() : whole->shape, inputs.data(), inputs.size(), terms.back().origin, sum);
}

bool BackwardPass::add_one_by_one(Ref* sum, std::span<const Term> terms) {
  return std::all_of(terms.begin(), terms.end(), [&](const Term& term) { return add(sum, term.right, term.origin); });
}

// The concatenated rows of all terms; of products and tables those of both sides.
bool BackwardPass::rows_of_group(std::span<const Term> terms, std::vector<Ref>* inputs) {
  const Origin origin = terms.back().origin;
  if (terms[0].kind() == Form::kRows) return join_summed({terms.begin(), terms.end()}, origin, &inputs->emplace_back());
  const bool is_product = terms[0].kind() == Form::kProduct;
  const auto axes = static_cast<int64_t>(terms[0].call->inputs[terms[0].input]->shape.size());
  std::vector<Ref> left, right;
  for (const Term& term : terms) {
    left.push_back(term.left);
    right.push_back(term.right);
  }
  inputs->resize(2);
  return join_rows(left, is_product ? 1 : 0, origin, &(*inputs)[0]) && join_rows(right, is_product ? 1 : axes - 1, origin, &(*inputs)[1]);
}

bool BackwardPass::record_alone(const Term& term, Ref* out) {
  if (term.kind() == Form::kPlain || (term.kind() == Form::kRows && term.inputs.empty())) {
    *out = term.right;
    return true;
  }
  const Gradient& gradient = *term.gradient;
  std::vector<Ref> refs;
  uint64_t mask = 0;
  for (size_t i = 0; i < gradient.used.size(); ++i) {
    const bool is_left = gradient.used[i] == gradient.form.left;
    refs.push_back(!term.inputs.empty() ? term.inputs[i] : is_left ? term.left : term.right);
    if (request_.create && requires_grad(refs[i])) mask |= Entry::mask_bit(i);
  }
  return record(gradient.instance, refs.data(), refs.size(), mask, term.origin, out);
}

// The rows of several sums as one matrix.
bool BackwardPass::join_summed(std::vector<Term> terms, const Origin& origin, Ref* out) {
  static Operation* compute = nullptr;
  if (!compute && !(compute = kindred_of_gradient(hooks.pullback_rows))) return false;
  static Operation* const join = operation_of(hooks.join_rows);
  std::vector<Ref> rows;
  for (Term& term : terms) {
    const int64_t axes = term.gradient->form.left;
    const bool is_computed = term.gradient->form.right == Form::kComputed;
    Attributes* attributes = term.gradient->instance->attributes.get();
    if (is_computed && !call_with(compute, attributes, term.inputs.data(), term.inputs.size(), term.origin, &term.right)) return false;
    rows.push_back(term.right);
    if (axes != 1 && !call(join, {axes}, &term.right, 1, term.origin, &rows.back())) return false;
  }
  return join_rows(std::move(rows), 1, origin, out);
}

// The rows of all values as one matrix; the last `axes` axes are those of a row. The weights and the bias of a cell join the
// same cotangents.
bool BackwardPass::join_rows(std::vector<Ref> refs, int64_t axes, const Origin& origin, Ref* out) {
  static Operation* const join = operation_of(hooks.join_rows);
  auto [known, fresh] = joined_.try_emplace({axes, refs}, kNoRef);
  if (!fresh) {
    *out = known->second;
    return true;
  }
  while (refs.size() > 1) {
    std::vector<Ref> joined;
    for (size_t k = 0, count; k < refs.size(); k += count) {
      count = joined_of(refs.size() - k);
      joined.push_back(refs[k]);
      if ((count > 1 || axes != 1) && !call(join, {axes}, &refs[k], count, origin, &joined.back())) return false;
    }
    refs = std::move(joined);
    axes = 1;
  }
  *out = known->second = refs[0];
  return true;
}

// Records a call of an operation whose attributes are integers.
bool BackwardPass::call(Operation* operation, const std::vector<int64_t>& numbers, const Ref* inputs, size_t count, const Origin& origin,
                  Ref* out) {
  const Owned tuple(integer_tuple(numbers));
  AttributesRef attributes = tuple ? attributes_of(tuple.object) : nullptr;
  return attributes && call_with(operation, attributes.get(), inputs, count, origin, out);
}

// Whether gradients of the pass `flow` through the copy.
bool BackwardPass::copy(Ref ref, Ref* out, bool flow) {
  static Operation* const operation = operation_of(hooks.copy);
  Type* type = type_of(ref);
  const uint64_t mask = flow && request_.create && requires_grad(ref) ? Entry::mask_bit(0) : 0;
  const OpInstanceRef instance = found([&] { return op_instance_of(operation, no_attributes(), &type, 1, nullptr); });
  return instance && record(instance, &ref, 1, mask, {}, out);
}

bool BackwardPass::call_with(Operation* operation, Attributes* attributes, const Ref* inputs, size_t count, const Origin& origin, Ref* out) {
  std::vector<Type*> types;
  uint64_t mask = 0;
  for (size_t i = 0; i < count; ++i) {
    types.push_back(type_of(inputs[i]));
    if (request_.create && requires_grad(inputs[i])) mask |= Entry::mask_bit(i);
  }
  const OpInstanceRef instance = found([&] { return op_instance_of(operation, attributes, types.data(), count, nullptr); });
  return instance && record(instance, inputs, count, mask, origin, out);
}

}  // namespace twofold
