// Over 600 lines because all checks share one budget of work and one place for what is being checked.
#include "core/bundle_reader_verify.h"

#include <stdint.h>
#include <string.h>

#include "core/bundle_reader.h"
#include "core/bundle_reader_bodies.h"
#include "core/page_words.h"
#include "core/signature.h"

namespace quernel::runtime {
namespace {

// Limits far above any use.
constexpr uint64_t kMaxScratchBytes = uint64_t{1} << 30;
constexpr uint32_t kMaxArenas = 65536;
constexpr uint32_t kMaxStates = 65536, kMaxTestTensors = 131072;
constexpr uint32_t kMaxEntryPoints = 4096;
constexpr uint32_t kMaxNameBytes = 1024;  // of what others name by its index

bool power_of_two(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

// a + b and a * b, false on overflow.
bool add(uint64_t a, uint64_t b, uint64_t* sum) { return !__builtin_add_overflow(a, b, sum); }

uint64_t bit(schema::Feature feature) { return static_cast<uint64_t>(feature); }

bool is_symbolic(const schema::Tensor& tensor) {
  for (uint32_t d = 0; d < count(tensor.shape_expressions()); ++d)
    if (tensor.shape_expressions()->Get(d) >= 0) return true;
  return false;
}

class StructureVerifier {
 public:
  StructureVerifier(const schema::Bundle& bundle, uint64_t features, uint64_t file_bytes, qnl_error* error)
      : bundle_(bundle), features_(features), values_left_(file_bytes), error_(error) {}

  qnl_status verify() { return remember() && verify_all() ? QNL_OK : status_; }

 private:
  bool verify_all() {
    return verify_symbols() && verify_arenas() && verify_states() && verify_variants() &&
           verify_entry_points() && verify_test_vectors();
  }

  // Memory for names, and a word per arena and expression, which make each check of one take constant time.
  bool remember() {
    uint32_t arenas = count(bundle_.arenas());
    // Two slots of two words for each name of the longest list; inputs and outputs have an arena each.
    uint64_t name_words =
        uint64_t{4} * (kMaxSymbols + arenas + count(bundle_.states()) + count(bundle_.entry_points()));
    if (!words_.allocate(name_words + arenas + count(bundle_.expressions()))) return out_of_memory();
    owners_ = words_.data() + name_words;
    uses_runtime_ = owners_ + arenas;
    return true;
  }
  bool out_of_memory() {
    status_ = runtime::fail(error_, QNL_OUT_OF_MEMORY, "bundle: no memory for checking it");
    return false;
  }

  // A failed check: what is being checked (below), then the text. Always false.
  template <class... Arguments>
  bool fail(Text<Arguments...> text, Arguments... arguments) {
    if constexpr (kErrorTexts) return fail_untyped(argument_kinds<Arguments...>(), text.text, arguments...);
    status_ = fail_status(error_, QNL_INVALID_BUNDLE);
    return false;
  }
  __attribute__((noinline, cold)) bool fail_untyped(uint32_t kinds, const char* text, ...) {
    Failure failure(error_, status_ = QNL_INVALID_BUNDLE);
    failure.append("{}", what_);
    if (name_ != nullptr) {
      failure.append(" '{}'", name_->c_str());
    } else if (index_ != kNoIndex) {
      failure.append(" {}", index_);
    }
    failure.append(": ");
    va_list arguments;
    va_start(arguments, text);
    failure.append_list(kinds, text, arguments);
    va_end(arguments);
    return false;
  }
  // What is checked from now on: "item 3", "symbol 'n'", "bundle".
  void begin(const char* what, uint32_t index) {
    if constexpr (kErrorTexts) what_ = what, name_ = nullptr, index_ = index;
  }
  void begin(const char* what, const flatbuffers::String* name) {
    if constexpr (kErrorTexts) what_ = what, name_ = name;
  }
  void begin(const char* what) { begin(what, kNoIndex); }

  bool verify_symbols() {
    begin("bundle");
    if ((count(bundle_.symbols()) != 0 || count(bundle_.expressions()) != 0) &&
        (features_ & bit(schema::Feature::symbols)) == 0)
      return fail("has symbols, but its header does not ask for the feature 'symbols'");
    if (count(bundle_.symbols()) > kMaxSymbols) return fail("more than {} symbols", kMaxSymbols);
    for (uint32_t i = 0; i < count(bundle_.expressions()); ++i) {
      begin("expression", i);
      const auto& code = *bundle_.expressions()->Get(i)->code();
      if (!aligned_to_8(&code) || code.size() % 2 != 0 ||
          !well_formed(code_of(*bundle_.expressions()->Get(i)), count(bundle_.symbols())))
        return fail("malformed");
      uses_runtime_[i] = uses_runtime_symbols(bundle_, code_of(*bundle_.expressions()->Get(i)));
    }
    for (uint32_t i = 0; i < count(bundle_.symbols()); ++i) {
      const schema::Symbol& s = *bundle_.symbols()->Get(i);
      begin("symbol", s.name());
      bool runtime = s.kind() == schema::SymbolKind::runtime;
      if (s.kind() > schema::SymbolKind::runtime || s.min() > s.max() || s.multiple_of() < 1 ||
          s.min() == kUnset || (!runtime && s.min() < 0))
        return fail("wrong kind or range");
      if (runtime ? !is_bound(s.max_expression()) : s.max_expression() != -1)
        return fail("wrong expression of its maximum");
    }
    return unique_names(bundle_.symbols(), count(bundle_.symbols()), "symbol");
  }

  // An index of an expression, or -1.
  bool is_any(int32_t expression) const {
    return expression == -1 ||
           (expression >= 0 && static_cast<uint32_t>(expression) < count(bundle_.expressions()));
  }
  // The same, of one over bound symbols only.
  bool is_bound(int32_t expression) const {
    return is_any(expression) && (expression == -1 || uses_runtime_[expression] == 0);
  }

  const schema::Segment* segment(int64_t index, schema::SegmentKind kind) const {
    if (index < 0 || index >= count(bundle_.segments())) return nullptr;
    const schema::Segment* s = bundle_.segments()->Get(static_cast<uint32_t>(index));
    return s->kind() == kind ? s : nullptr;
  }

  bool verify_arenas() {
    uint64_t total = 0;
    begin("bundle");
    if (count(bundle_.arenas()) > kMaxArenas) return fail("more than {} arenas", kMaxArenas);
    for (uint32_t i = 0; i < count(bundle_.arenas()); ++i) {
      const schema::Arena& a = *bundle_.arenas()->Get(i);
      begin("arena", i);
      if (a.kind() > schema::ArenaKind::state) return fail("unknown kind");
      if (!power_of_two(a.alignment()) || a.alignment() > 4096)
        return fail("expected an alignment that is a power of two up to 4096, found {}", a.alignment());
      if (a.bytes_expression() != -1) {
        if (!is_bound(a.bytes_expression()) || a.kind() == schema::ArenaKind::constants ||
            a.kind() == schema::ArenaKind::state || a.segment() != -1)
          return fail("wrong expression of its size");
        continue;
      }
      if (a.bytes() > kMaxArenaBytes || !add(total, a.bytes(), &total) || total > kMaxArenaBytes)
        return fail("size {} is beyond what any device has", a.bytes());
      bool constants = a.kind() == schema::ArenaKind::constants;
      if (a.segment() == -1 && !constants) continue;
      const schema::Segment* s = segment(a.segment(), schema::SegmentKind::constants);
      if (s == nullptr || !(constants || a.kind() == schema::ArenaKind::state)) return fail("wrong segment");
      if (s->bytes() != a.bytes())
        return fail("expected {} bytes, its segment has {}", a.bytes(), s->bytes());
    }
    return true;
  }

  bool verify_tensor(const schema::Tensor& t, const char* role, bool outputs) {
    begin(role, t.name());
    if (static_cast<uint32_t>(t.dtype()) >= QNL_DTYPE_COUNT) return fail("unknown dtype");
    if (count(t.shape()) > QNL_MAX_RANK)
      return fail("expected rank up to {}, found {}", QNL_MAX_RANK, count(t.shape()));
    if (!aligned_to_8(t.shape())) return fail("its shape is misaligned");
    if (t.arena() >= count(bundle_.arenas())) return fail("no such arena");
    if (count(t.shape_expressions()) != 0 && count(t.shape_expressions()) != count(t.shape()))
      return fail("expected no expressions of dims or one for each");
    uint64_t elements = 1;
    for (uint32_t d = 0; d < count(t.shape()); ++d) {
      int32_t expression = count(t.shape_expressions()) == 0 ? -1 : t.shape_expressions()->Get(d);
      if (!(outputs ? is_any(expression) : is_bound(expression)))
        return fail("dim {} has a wrong expression", d);
      if (expression >= 0) continue;
      if (!add_dim(t.shape()->Get(d), &elements)) return fail("dim {} is negative or too large", d);
    }
    if (is_symbolic(t)) return true;
    uint64_t bytes = qnl_dtype_bytes(static_cast<qnl_dtype>(t.dtype()), elements);
    if (t.bytes() != bytes) return fail("expected {} bytes for its shape, found {}", bytes, t.bytes());
    return true;
  }

  // Every table that has a name has it first.
  static const flatbuffers::String& name_of(const void* tables, uint32_t index) {
    const auto* vector = static_cast<const flatbuffers::Vector<flatbuffers::Offset<void>>*>(tables);
    return *static_cast<const flatbuffers::String*>(
        schema::target_of(vector->Get(index), schema::Symbol::VT_NAME));
  }
  static_assert(schema::Symbol::VT_NAME == 4 && schema::Tensor::VT_NAME == 4 &&
                schema::EntryPoint::VT_NAME == 4);
  bool verify_name(const char* what, const flatbuffers::String* name) {
    begin(what);
    if (name->size() > kMaxNameBytes || strlen(name->c_str()) != name->size())
      return fail("expected a name of up to {} bytes, none of them zero, found {}", kMaxNameBytes,
                  name->size());
    begin(what, name);
    return true;
  }
  // A hash stands for a name: names that were made to have the same one are refused with those that are the
  // same. n: as many as `remember` has room for.
  bool unique_names(const void* tables, uint32_t n, const char* role) {
    auto* slots = reinterpret_cast<uint64_t*>(words_.data());
    uint32_t steps = 0;
    memset(slots, 0, 2 * n * sizeof(uint64_t));
    for (uint32_t i = 0; i < n; ++i) {
      const flatbuffers::String& name = name_of(tables, i);
      if (!verify_name(role, &name)) return false;
      uint64_t hash = 0;
      for (uint32_t c = 0; c < name.size(); ++c) hash = (hash + name.Data()[c] + 1) * kHashFactor;
      hash |= 1;  // 0 is an empty slot
      auto at = static_cast<uint32_t>((hash >> 32) * (2 * n) >> 32);
      for (; slots[at] != 0; at = at + 1 == 2 * n ? 0 : at + 1)
        if (slots[at] == hash || ++steps > kMaxSteps + n * kMaxSteps) return fail("the name is used twice");
      slots[at] = hash;
    }
    return true;
  }
  static constexpr uint64_t kHashFactor = 0x9E3779B97F4A7C15;
  static constexpr uint32_t kMaxSteps = 16;  // per name; far above what names take that nobody chose for it

  bool verify_states() {
    begin("bundle");
    if (count(bundle_.states()) > kMaxStates) return fail("more than {} states", kMaxStates);
    for (uint32_t i = 0; i < count(bundle_.states()); ++i) {
      const schema::Tensor& t = *bundle_.states()->Get(i);
      if (!verify_tensor(t, "state", false)) return false;
      if (is_symbolic(t)) return fail("has a symbolic shape");
      const schema::Arena& a = *bundle_.arenas()->Get(t.arena());
      uint64_t element = qnl_dtype_bytes(static_cast<qnl_dtype>(t.dtype()), 1);
      if (a.kind() != schema::ArenaKind::state || t.bytes() > a.bytes() ||
          t.offset() > a.bytes() - t.bytes() || t.offset() % element != 0)
        return fail("does not lie in a state arena");
    }
    return unique_names(bundle_.states(), count(bundle_.states()), "state");
  }

  bool verify_variants() {
    begin("bundle");
    if (bundle_.variants()->size() == 0) return fail("expected at least one variant");
    if (bundle_.variants()->size() > 256) return fail("more than 256 variants");
    uint32_t companions = count(bundle_.companions());
    if (companions > 256) return fail("more than 256 companions");
    if (companions > 0 && (features_ & bit(schema::Feature::companions)) == 0)
      return fail("has companions, but not the feature");
    for (uint32_t v = 0; v < bundle_.variants()->size(); ++v)
      if (!verify_variant(*bundle_.variants()->Get(v), companions)) return false;
    for (uint32_t h = 0; h < companions; ++h)
      if (!verify_variant(*bundle_.companions()->Get(h), 0)) return false;
    return true;
  }

  bool verify_variant(const schema::Variant& variant, uint32_t companions) {
    if (!verify_name("variant", variant.target())) return false;
    if (segment(variant.code_segment(), schema::SegmentKind::code) == nullptr)
      return fail("wrong code segment");
    if (variant.code_format() > schema::CodeFormat::spirv) return fail("unknown code format");
    if (variant.companion() < -1 ||
        (variant.companion() >= 0 && static_cast<uint32_t>(variant.companion()) >= companions))
      return fail("no companion {}", int64_t{variant.companion()});
    for (uint32_t k = 0; k < variant.kernels()->size(); ++k) {
      if (!verify_name("kernel", variant.kernels()->Get(k)->name())) return false;
      if (variant.kernels()->Get(k)->scratch_bytes() > kMaxScratchBytes) return fail("scratch is too large");
    }
    return true;
  }

  using Tensors = flatbuffers::Vector<flatbuffers::Offset<schema::Tensor>>;

  bool verify_slots(const Tensors* tensors, schema::ArenaKind kind, const char* role) {
    begin(role);
    for (uint32_t i = 0; i < count(tensors); ++i) {
      const schema::Tensor& t = *tensors->Get(i);
      if (!verify_tensor(t, role, kind == schema::ArenaKind::output)) return false;
      const schema::Arena& slot = *bundle_.arenas()->Get(t.arena());
      bool same_size = is_symbolic(t) ? slot.bytes_expression() != -1
                                      : slot.bytes_expression() == -1 && slot.bytes() == t.bytes();
      if (slot.kind() != kind || !same_size || t.offset() != 0)
        return fail("expected a slot of its kind and size");
      if (owners_[t.arena()] == entry_) return fail("shares its slot");
      owners_[t.arena()] = entry_;
    }
    return unique_names(tensors, count(tensors), role);
  }

  // symbolic: has expressions, so that its range is known before a run only.
  bool verify_binding(const schema::Binding& b, bool symbolic) {
    if (b.arena() >= count(bundle_.arenas())) return fail("binding: no such arena");
    if (b.access() > schema::Access::read_write) return fail("binding: unknown access");
    const schema::Arena& a = *bundle_.arenas()->Get(b.arena());
    if (!symbolic && a.bytes_expression() == -1 &&
        (b.bytes() > a.bytes() || b.offset() > a.bytes() - b.bytes()))
      return fail("binding: bytes {} to {}+{} lie outside arena {} of {}", b.offset(), b.offset(), b.bytes(),
                  b.arena(), a.bytes());
    bool writes = b.access() != schema::Access::read;
    uint32_t owner = owners_[b.arena()];
    switch (a.kind()) {
      case schema::ArenaKind::constants:
        if (writes) return fail("binding: writes to constants");
        return true;
      case schema::ArenaKind::workspace:
        if (owner != plan_) return fail("binding: arena {} is not one of the plan's workspaces", b.arena());
        return true;
      case schema::ArenaKind::input:
        if (writes) return fail("binding: writes to an input");
        [[fallthrough]];
      case schema::ArenaKind::output:
        if (owner != entry_) return fail("binding: slot of another entry point");
        return true;
      case schema::ArenaKind::state:
        return true;
    }
    return false;
  }

  bool verify_copy(const schema::Item& item) {
    if (count(item.bindings()) != 2) return fail("copy: expected two bindings");
    const schema::Binding& source = *item.bindings()->Get(0);
    const schema::Binding& target = *item.bindings()->Get(1);
    if (source.access() != schema::Access::read || target.access() == schema::Access::read)
      return fail("copy: expected to read its first binding and write its second");
    CopyLoop loops[kMaxCopyLoops];
    for (uint32_t l = 0; l < count(item.copy_loops()); ++l) {
      const schema::CopyLoop& loop = *item.copy_loops()->Get(l);
      loops[l] = {loop.count(), loop.source_stride(), loop.target_stride()};
      if (loop.count() == 0) return fail("copy: is empty");
    }
    if (item.copy_bytes_expression() != -1 || has_symbolic_range(item, 0) || has_symbolic_range(item, 1))
      return true;
    if (item.copy_bytes() == 0 ||
        !copy_fits(loops, count(item.copy_loops()), item.copy_bytes(), source.bytes(), target.bytes()))
      return fail("copy: reaches outside its bindings, is empty, or writes more bytes than its target has");
    return true;
  }

  bool has_expressions(const schema::Item& item, uint32_t binding) const {
    if (count(item.binding_expressions()) == 0) return false;
    const schema::BindingExpressions& e = *item.binding_expressions()->Get(binding);
    return e.offset() != -1 || e.bytes() != -1;
  }
  bool has_symbolic_range(const schema::Item& item, uint32_t binding) const {
    return has_expressions(item, binding) ||
           bundle_.arenas()->Get(item.bindings()->Get(binding)->arena())->bytes_expression() != -1;
  }

  static bool is_custom(const schema::Item& item) {
    return item.kind() == schema::ItemKind::host_callback && count(item.signature()) != 0;
  }

  bool verify_expressions(const schema::Item& item) {
    bool dispatch = item.kind() == schema::ItemKind::dispatch;
    if (!is_any(item.workgroups_expression()) || (!dispatch && item.workgroups_expression() != -1) ||
        !is_any(item.copy_bytes_expression()) || !is_bound(item.flops_expression()) ||
        !is_bound(item.bytes_read_expression()) || !is_bound(item.bytes_written_expression()) ||
        !is_any(item.count_expression()) || !is_any(item.condition_expression()) ||
        (item.kind() != schema::ItemKind::copy && item.copy_bytes_expression() != -1))
      return fail("wrong expression of its size");
    if (count(item.symbols()) > (dispatch || is_custom(item) ? kMaxItemSymbols : 0))
      return fail("too many symbols");
    for (uint32_t i = 0; i < count(item.symbols()); ++i)
      if (item.symbols()->Get(i) < 0 || !is_any(item.symbols()->Get(i)))
        return fail("wrong expression of a symbol");
    if (count(item.binding_expressions()) == 0) return true;
    if (count(item.binding_expressions()) != count(item.bindings()))
      return fail("expected expressions for each binding or none");
    for (uint32_t b = 0; b < count(item.bindings()); ++b)
      if (!is_bound(item.binding_expressions()->Get(b)->offset()) ||
          !is_bound(item.binding_expressions()->Get(b)->bytes()))
        return fail("wrong expression of a binding");
    return true;
  }

  // A custom op's bindings and symbols are those of its signature.
  bool verify_custom(const schema::Item& item) {
    if ((features_ & bit(schema::Feature::custom_ops)) == 0)
      return fail("needs the feature 'custom_ops', which the header does not ask for");
    SignatureReader signature(item.signature()->c_str());
    SignatureType type;
    uint32_t tensors = 0, dims = 0;
    while (signature.next(&type)) {
      if (tensors == count(item.bindings())) return fail("too few bindings");
      schema::Access access = type.is_result ? schema::Access::write : schema::Access::read;
      if (item.bindings()->Get(tensors)->access() != access)
        return fail("expected to read operands and write results");
      tensors += 1;
      dims += type.rank;
    }
    if (!signature.complete() || tensors != count(item.bindings()) || dims != count(item.symbols()))
      return fail("expected a signature of its bindings and symbols, found {}", item.signature()->c_str());
    return true;
  }

  bool is_runtime_symbol(int32_t symbol) const {
    return symbol >= 0 && static_cast<uint32_t>(symbol) < count(bundle_.symbols()) &&
           bundle_.symbols()->Get(static_cast<uint32_t>(symbol))->kind() == schema::SymbolKind::runtime;
  }

  bool verify_read_symbol(const schema::Item& item) {
    auto dtype = static_cast<qnl_dtype>(item.dtype());
    bool whole = dtype >= QNL_I8 && dtype <= QNL_BOOL;
    if (count(item.bindings()) != 1 || !whole || item.bindings()->Get(0)->access() != schema::Access::read ||
        item.bindings()->Get(0)->bytes() != qnl_dtype_bytes(dtype, 1) ||
        (has_expressions(item, 0) && item.binding_expressions()->Get(0)->bytes() != -1))
      return fail("expected to read one integer or boolean");
    return true;
  }

  bool verify_control(const schema::Item& item, const OpenBodies& bodies) {
    if ((features_ & bit(schema::Feature::control_flow)) == 0)
      return fail("needs the feature 'control_flow', which the header does not ask for");
    if (item.kind() != schema::ItemKind::branch &&
        (!is_runtime_symbol(item.symbol()) || bodies.counts_with(item.symbol())))
      return fail("expected a runtime symbol that no loop around it counts with");
    if (item.kind() == schema::ItemKind::read_symbol) return verify_read_symbol(item);
    bool loop = item.kind() == schema::ItemKind::loop;
    if (count(item.bindings()) != 0 ||
        (item.condition_expression() == -1 && !(loop && item.count_expression() != -1)))
      return fail("wrong condition or count");
    return true;
  }

  bool verify_edges(const schema::Item& item, uint32_t index, const OpenBodies& bodies, PageWords* body_of) {
    for (uint32_t e = 0; e < count(item.edges()); ++e) {
      const schema::Edge& edge = *item.edges()->Get(e);
      if (edge.item() >= index || edge.kind() > schema::EdgeKind::alias)
        return fail("expected edges to earlier items, found one to {}", edge.item());
      if (body_of != nullptr && !bodies.contains((*body_of)[edge.item()]))
        return fail("has an edge into another body, to item {}", edge.item());
    }
    return true;
  }

  bool verify_item(const schema::Plan& plan, uint32_t index, const OpenBodies& bodies) {
    const schema::Item& item = *plan.items()->Get(index);
    if (!aligned_to_8(item.bindings()) || !aligned_to_8(item.copy_loops()))
      return fail("its bindings are misaligned");
    if (count(item.copy_loops()) > kMaxCopyLoops) return fail("more than {} copy loops", kMaxCopyLoops);
    if (item.kind() > schema::ItemKind::branch) return fail("unknown kind");
    if (item.on_companion() && item.kind() != schema::ItemKind::dispatch)
      return fail("runs on a companion, but is no dispatch");
    if (static_cast<uint32_t>(item.dtype()) >= QNL_DTYPE_COUNT) return fail("unknown dtype");
    if (!verify_expressions(item)) return false;
    for (uint32_t b = 0; b < count(item.bindings()); ++b)
      if (!verify_binding(*item.bindings()->Get(b), has_expressions(item, b))) return false;
    switch (item.kind()) {
      case schema::ItemKind::dispatch:
        return verify_dispatch(item, *bundle_.variants()->Get(plan.variant()));
      case schema::ItemKind::copy:
        return verify_copy(item);
      case schema::ItemKind::synchronize:
        return true;
      case schema::ItemKind::host_callback:
        if (item.callback()->size() == 0) return fail("callback without a name");
        return !is_custom(item) || verify_custom(item);
      case schema::ItemKind::read_symbol:
      case schema::ItemKind::loop:
      case schema::ItemKind::branch:
        return verify_control(item, bodies);
    }
    return false;
  }

  bool verify_dispatch(const schema::Item& item, const schema::Variant& variant) {
    if (item.on_companion() && variant.companion() < 0)
      return fail("runs on a companion, its variant has none");
    const schema::Variant& image =
        item.on_companion() ? *bundle_.companions()->Get(static_cast<uint32_t>(variant.companion()))
                            : variant;
    if (item.kernel() >= image.kernels()->size()) return fail("no kernel {}", item.kernel());
    if (item.workgroups() > kMaxWorkgroups) return fail("too many workgroups");
    for (uint32_t b = 0; item.on_companion() && b < count(item.bindings()); ++b) {
      const schema::Arena& arena = *bundle_.arenas()->Get(item.bindings()->Get(b)->arena());
      bool device = arena.kind() == schema::ArenaKind::workspace || arena.kind() == schema::ArenaKind::state;
      if (device && !arena.host_access()) return fail("runs on a companion that does not reach its bindings");
    }
    return true;
  }

  bool verify_items(const schema::Plan& plan) {
    uint32_t items = plan.items()->size();
    OpenBodies bodies(items);
    PageWords body_of;
    bool has_bodies = false;
    for (uint32_t i = 0; i < items; ++i) {
      const schema::Item& item = *plan.items()->Get(i);
      begin("item", i);
      bodies.advance_to(i);
      if (!verify_item(plan, i, bodies)) return false;
      if (runs_others(item.kind()) && !has_bodies) {
        if (!body_of.allocate(items)) return out_of_memory();
        has_bodies = true;  // items before are in body 0, which fresh pages say
      }
      if (!verify_edges(item, i, bodies, has_bodies ? &body_of : nullptr)) return false;
      if (has_bodies) body_of[i] = bodies.innermost();
      if (runs_others(item.kind()) && !bodies.enter(item, i))
        return fail("its body is not nested in the one around it, or more than {} deep", kMaxNesting);
    }
    return true;
  }

  bool verify_plan(const schema::EntryPoint& entry, uint32_t variant) {
    const schema::Plan& plan = *entry.plans()->Get(variant);
    begin("plan", variant);
    plan_ += 1;
    if (plan.variant() != variant) return fail("is for variant {}", plan.variant());
    if (count(plan.workspaces()) > kMaxWorkspaces) return fail("more than {} workspaces", kMaxWorkspaces);
    for (uint32_t i = 0; i < count(plan.workspaces()); ++i) {
      uint32_t arena = plan.workspaces()->Get(i);
      if (arena >= count(bundle_.arenas()) ||
          bundle_.arenas()->Get(arena)->kind() != schema::ArenaKind::workspace ||
          (i > 0 && arena <= plan.workspaces()->Get(i - 1)))
        return fail("expected ascending workspace arenas");
      owners_[arena] = plan_;
    }
    return verify_items(plan);
  }

  bool verify_entry_points() {
    uint32_t entries = bundle_.entry_points()->size();
    begin("bundle");
    if (entries == 0) return fail("expected at least one entry point");
    if (entries > kMaxEntryPoints) return fail("more than {} entry points", kMaxEntryPoints);
    for (uint32_t e = 0; e < entries; ++e) {
      const schema::EntryPoint& entry = *bundle_.entry_points()->Get(e);
      entry_ = e + 1;
      if (!verify_slots(entry.inputs(), schema::ArenaKind::input, "input") ||
          !verify_slots(entry.outputs(), schema::ArenaKind::output, "output"))
        return false;
      begin("entry point", entry.name());
      for (uint32_t s = 0; s < count(entry.states()); ++s)
        if (entry.states()->Get(s) >= count(bundle_.states())) return fail("no such state");
      if (entry.plans()->size() != bundle_.variants()->size()) return fail("expected one plan per variant");
      for (uint32_t v = 0; v < entry.plans()->size(); ++v)
        if (!verify_plan(entry, v)) return false;
    }
    return unique_names(bundle_.entry_points(), entries, "entry point");
  }

  // Dims from *dim on are the tensor's, where it says them, and give these bytes.
  static bool fits(const schema::TestVector& test, uint32_t* dim, const schema::Tensor& t, uint64_t bytes) {
    uint64_t elements = 1;
    if (count(t.shape()) > count(test.dims()) - *dim) return false;
    for (uint32_t d = 0; d < count(t.shape()); ++d) {
      int64_t value = test.dims()->Get((*dim)++);
      bool symbolic = count(t.shape_expressions()) != 0 && t.shape_expressions()->Get(d) >= 0;
      if ((!symbolic && value != t.shape()->Get(d)) || !add_dim(value, &elements)) return false;
    }
    return bytes == qnl_dtype_bytes(static_cast<qnl_dtype>(t.dtype()), elements);
  }

  bool verify_test_vectors() {
    for (uint32_t i = 0; i < count(bundle_.test_vectors()); ++i) {
      const schema::TestVector& test = *bundle_.test_vectors()->Get(i);
      begin("test vector", i);
      if (test.entry_point() >= bundle_.entry_points()->size()) return fail("no such entry point");
      const schema::EntryPoint& entry = *bundle_.entry_points()->Get(test.entry_point());
      if (!aligned_to_8(test.tensors()) || !aligned_to_8(test.dims()) || !aligned_to_8(test.tolerances()))
        return fail("its values are misaligned");
      if (count(test.tolerances()) != count(test.tensors()))
        return fail("expected a tolerance for each value");
      if (count(test.tensors()) > kMaxTestTensors) return fail("more than {} values", kMaxTestTensors);
      uint32_t dim = 0;
      for (uint32_t j = 0; j < count(test.tensors()); ++j) {
        const schema::TestTensor& t = *test.tensors()->Get(j);
        const Tensors* tensors = t.output() ? entry.outputs() : entry.inputs();
        const schema::Segment* s = segment(t.segment(), schema::SegmentKind::test_values);
        if (s == nullptr || t.bytes() > s->bytes() || t.offset() > s->bytes() - t.bytes() ||
            t.tensor() >= count(tensors) || !fits(test, &dim, *tensors->Get(t.tensor()), t.bytes()))
          return fail("value {} does not fit the signature", j);
        if (t.bytes() > values_left_) return fail("value {} shares bytes with others", j);
        values_left_ -= t.bytes();
      }
      if (dim != count(test.dims())) return fail("has too many dims");
    }
    return true;
  }

  const schema::Bundle& bundle_;
  uint64_t features_;
  uint64_t values_left_;  // bytes of test values, which share none: what reads them all is linear, too
  PageWords words_;
  uint32_t* owners_ = nullptr;  // of each arena: of slots entry_, of workspaces plan_, that it belongs to
  uint32_t* uses_runtime_ = nullptr;  // of each expression: whether it uses a runtime symbol
  uint32_t entry_ = 0, plan_ = 0;     // numbers of those that are checked, from 1
  qnl_error* error_;
  qnl_status status_ = QNL_OK;
  const char* what_ = "bundle";
  static constexpr uint32_t kNoIndex = ~0u;
  uint32_t index_ = kNoIndex;
  const flatbuffers::String* name_ = nullptr;
};

}  // namespace

bool uses_runtime_symbols(const schema::Bundle& bundle, const Expression& expression) {
  for (uint32_t i = 0; i < expression.steps; ++i)
    if (expression.opcode(i) == Opcode::kSymbol &&
        bundle.symbols()->Get(static_cast<uint32_t>(expression.operand(i)))->kind() ==
            schema::SymbolKind::runtime)
      return true;
  return false;
}

bool copy_fits(const CopyLoop* loops, uint32_t count, uint64_t copy_bytes, uint64_t source_bytes,
               uint64_t target_bytes) {
  uint64_t total = copy_bytes;
  uint64_t extents[2] = {copy_bytes, copy_bytes};  // of source and target: up to the farthest byte
  for (uint32_t l = 0; l < count; ++l) {
    const uint64_t strides[2] = {loops[l].source_stride, loops[l].target_stride};
    if (!multiply(total, loops[l].count, &total)) return false;
    for (uint32_t side = 0; side < 2; ++side) {
      uint64_t span = 0;
      if (!multiply(strides[side], loops[l].count - 1, &span) || !add(extents[side], span, &extents[side]))
        return false;
    }
  }
  return total <= target_bytes && extents[0] <= source_bytes && extents[1] <= target_bytes;
}

qnl_status verify_structure(const schema::Bundle& bundle, uint64_t features, uint64_t file_bytes,
                            qnl_error* error) {
  return StructureVerifier(bundle, features, file_bytes, error).verify();
}

}  // namespace quernel::runtime
