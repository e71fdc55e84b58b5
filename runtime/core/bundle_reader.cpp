#include "core/bundle_reader.h"

#include <string.h>

#include "core/bundle_reader_shape.h"
#include "core/bundle_reader_verify.h"
#include "schemas/bundle_hash.h"

namespace quernel::runtime {
namespace {

constexpr uint32_t kIdentifier = 0x314C4E51;  // "QNL1"
constexpr uint32_t kByteOrder = 0x01020304;
constexpr uint32_t kSwappedByteOrder = 0x04030201;
constexpr uint32_t kSchemaVersion = 1;
constexpr uint64_t kImplementedFeatures =
    static_cast<uint64_t>(schema::Feature::symbols) | static_cast<uint64_t>(schema::Feature::control_flow) |
    static_cast<uint64_t>(schema::Feature::custom_ops) | static_cast<uint64_t>(schema::Feature::companions);
// FlatBuffers offsets are 32-bit and signed.
constexpr uint64_t kMaxStructureBytes = uint64_t{1} << 30;

static_assert(sizeof(schema::FileHeader) == 64);

qnl_status corrupt(qnl_error* error, qnl_status status, const char* what, uint64_t expected, uint64_t found) {
  return fail(error, status, "{}: expected hash {}, found {}; the file is damaged, copy or compile it again",
              what, expected, found);
}

qnl_status check_features(uint64_t features, qnl_error* error) {
  uint64_t missing = features & ~kImplementedFeatures;
  if (missing == 0) return QNL_OK;
  uint32_t bit = 0;
  while (((missing >> bit) & 1) == 0) ++bit;
  return fail(error, QNL_UNKNOWN_FEATURE,
              "bundle: needs feature bit {}, which this runtime does not know; use a newer runtime", bit);
}

void append_version(Failure& failure, uint32_t version) {
  failure.append("{}.{}.{}", version >> 16, version >> 8 & 255, version & 255);
}

qnl_status check_header(const schema::FileHeader& header, uint64_t bytes, qnl_error* error) {
  if (header.byte_order() == kSwappedByteOrder)
    return fail(error, QNL_WRONG_BYTE_ORDER, "bundle: expected little-endian, found big-endian");
  uint64_t hash = qnl_hash(&header, sizeof header - sizeof(uint64_t));
  if (hash != header.header_hash())
    return corrupt(error, QNL_CORRUPT_HEADER, "bundle header", header.header_hash(), hash);
  if (header.byte_order() != kByteOrder)
    return fail(error, QNL_WRONG_BYTE_ORDER, "bundle: byte order mark is neither little- nor big-endian");
  if (header.schema_version() > kSchemaVersion || header.schema_version() == 0)
    return fail(error, QNL_NEWER_SCHEMA,
                "bundle: expected schema version 1 to {}, found {}; use a newer runtime", kSchemaVersion,
                header.schema_version());
  if (header.min_runtime_version() > QNL_RUNTIME_VERSION) {
    Failure failure(error, QNL_NEWER_RUNTIME_NEEDED);
    failure.append("bundle: needs runtime ");
    append_version(failure, header.min_runtime_version());
    failure.append(" or newer, this one is ");
    append_version(failure, QNL_RUNTIME_VERSION);
    return failure;
  }
  if (qnl_status status = check_features(header.features(), error); status != QNL_OK) return status;
  if (bytes < header.file_bytes())
    return fail(error, QNL_TRUNCATED, "bundle: expected {} bytes, found {}", header.file_bytes(), bytes);
  if (bytes > header.file_bytes())
    return fail(error, QNL_INVALID_BUNDLE, "bundle: expected {} bytes, found {}; something was appended",
                header.file_bytes(), bytes);
  uint64_t offset = header.structure_offset(), size = header.structure_bytes();
  if (offset < sizeof header || offset % 64 != 0 || offset > bytes || size > bytes - offset ||
      size > kMaxStructureBytes)
    return fail(error, QNL_INVALID_BUNDLE, "bundle: structure lies outside the file");
  return QNL_OK;
}

bool all_zero(const uint8_t* begin, uint64_t bytes) {
  uint8_t any = 0;
  for (uint64_t i = 0; i < bytes; ++i) any |= begin[i];
  return any == 0;
}

// Ranges of segments, in order and inside the file, then hashes of those with (weights == is constants or
// test values), and zeros in the gap before each such segment. The gap after a weights segment belongs to its
// page: it is looked at only together with the weights.
qnl_status check_segment_ranges(const schema::Bundle& bundle, uint64_t begin, uint64_t file_bytes,
                                qnl_error* error) {
  uint64_t end = begin;
  if (!aligned_to_8(bundle.segments()))
    return fail(error, QNL_INVALID_BUNDLE, "bundle: its list of segments is misaligned");
  for (uint32_t i = 0; i < count(bundle.segments()); ++i) {
    const schema::Segment& s = *bundle.segments()->Get(i);
    if (s.offset() % 4096 != 0 || s.offset() < end || s.offset() > file_bytes ||
        s.bytes() > file_bytes - s.offset() || s.kind() > schema::SegmentKind::test_values)
      return fail(error, QNL_INVALID_BUNDLE,
                  "segment {}: expected a page-aligned range inside the file, after the one before", i);
    end = s.offset() + s.bytes();
  }
  if (end != file_bytes)
    return fail(error, QNL_INVALID_BUNDLE, "bundle: expected the last segment to end the file");
  return QNL_OK;
}

qnl_status check_segment_hashes(const schema::Bundle& bundle, const uint8_t* data, uint64_t begin,
                                bool weights, qnl_error* error) {
  uint64_t end = begin;
  bool after_weights = false;
  for (uint32_t i = 0; i < count(bundle.segments()); ++i) {
    const schema::Segment& s = *bundle.segments()->Get(i);
    bool is_code = s.kind() == schema::SegmentKind::code;
    qnl_status status = is_code ? QNL_CORRUPT_CODE : QNL_CORRUPT_CONSTANTS;
    if (after_weights == weights && !all_zero(data + end, s.offset() - end))
      return fail(error, after_weights ? QNL_CORRUPT_CONSTANTS : QNL_CORRUPT_STRUCTURE,
                  "segment {}: expected zeros between it and the one before; the file is damaged", i);
    if (is_code != weights) {
      uint64_t hash = qnl_hash(data + s.offset(), s.bytes());
      if (hash != s.hash())
        return corrupt(error, status, is_code ? "code segment" : "constants", s.hash(), hash);
    }
    end = s.offset() + s.bytes();
    after_weights = !is_code;
  }
  return QNL_OK;
}

const char* text(const flatbuffers::String* s) { return s->c_str(); }

}  // namespace

// The infix text of the steps before `end`; begins: for each step the first one of what it computes. What
// lies deeper than a reader would follow is left out, which bounds the stack that this takes, and nothing is
// computed that the text has no room for.
void BundleReader::append_steps(TextBuilder& text, const Expression& expression, const uint16_t* begins,
                                uint32_t end, uint32_t depth) const {
  if (text.full()) return;
  constexpr const char* kInfix[] = {"", "", " + ", " - ", " * ", " / ", " % ", ", ", ", "};
  auto opcode = expression.opcode(end - 1);
  int64_t operand = expression.operand(end - 1);
  if (depth > 32) {
    text.append_characters("...");
  } else if (opcode == Opcode::kConstant) {
    text.append_number(operand);
  } else if (opcode == Opcode::kSymbol) {
    text.append_characters(symbol(static_cast<uint32_t>(operand)).name);
  } else {
    text.append_characters(opcode == Opcode::kMin ? "min(" : opcode == Opcode::kMax ? "max(" : "(");
    append_steps(text, expression, begins, begins[end - 2], depth + 1);
    text.append_characters(kInfix[static_cast<size_t>(opcode)]);
    append_steps(text, expression, begins, end - 1, depth + 1);
    text.append_characters(")");
  }
}

qnl_status BundleReader::open(const void* data, uint64_t bytes, qnl_error* error) {
  data_ = static_cast<const uint8_t*>(data);
  bytes_ = bytes;
  if (reinterpret_cast<uintptr_t>(data) % 64 != 0)
    return fail(error, QNL_INVALID_ARGUMENT, "bundle memory: expected 64-byte alignment");
  uint32_t identifier = 0;
  if (bytes >= sizeof identifier) memcpy(&identifier, data_, sizeof identifier);
  if (identifier != kIdentifier)
    return fail(error, QNL_NOT_A_BUNDLE, "file: expected a bundle, which begins with 'QNL1'; found {}",
                bytes == 0 ? "an empty file" : "something else");
  if (bytes < sizeof(schema::FileHeader))
    return fail(error, QNL_TRUNCATED, "bundle: expected at least 64 bytes, found {}", bytes);
  const auto& header = *reinterpret_cast<const schema::FileHeader*>(data_);
  if (qnl_status status = check_header(header, bytes, error); status != QNL_OK) return status;
  return open_structure(error);
}

qnl_status BundleReader::open_structure(qnl_error* error) {
  const auto& header = *reinterpret_cast<const schema::FileHeader*>(data_);
  const uint8_t* structure = data_ + header.structure_offset();
  uint64_t hash = qnl_hash(structure, header.structure_bytes());
  if (hash != header.structure_hash())
    return corrupt(error, QNL_CORRUPT_STRUCTURE, "bundle structure", header.structure_hash(), hash);
  if (!all_zero(data_ + sizeof header, header.structure_offset() - sizeof header))
    return fail(error, QNL_CORRUPT_STRUCTURE, "bundle: expected zeros before the structure");
  auto structure_bytes = static_cast<uint32_t>(header.structure_bytes());
  if (!verify_shape(structure, structure_bytes, max_shape_work(structure_bytes)))
    return fail(
        error, QNL_INVALID_BUNDLE,
        "bundle: structure is not a well-formed FlatBuffer of this schema, or shares parts of it more "
        "often than this reader accepts");
  const schema::Bundle* bundle = schema::GetBundle(structure);
  uint64_t structure_end = header.structure_offset() + header.structure_bytes();
  if (qnl_status status = check_segment_ranges(*bundle, structure_end, bytes_, error); status != QNL_OK)
    return status;
  if (qnl_status status = check_segment_hashes(*bundle, data_, structure_end, false, error); status != QNL_OK)
    return status;
  qnl_status status = verify_structure(*bundle, header.features(), bytes_, error);
  if (status != QNL_OK) return status;
  bundle_ = bundle;
  return QNL_OK;
}

qnl_status BundleReader::verify_weights(qnl_error* error) const {
  const auto& header = *reinterpret_cast<const schema::FileHeader*>(data_);
  return check_segment_hashes(*bundle_, data_, header.structure_offset() + header.structure_bytes(), true,
                              error);
}

// The header has the hash of the structure, which has those of the segments.
uint64_t BundleReader::hash() const {
  return reinterpret_cast<const schema::FileHeader*>(data_)->header_hash();
}

const char* BundleReader::producer() const { return text(bundle_->producer()); }
const char* BundleReader::rounding() const { return text(bundle_->rounding()); }
uint32_t BundleReader::property_count() const { return count(bundle_->properties()) / 2; }
const char* BundleReader::property_name(uint32_t index) const {
  return text(bundle_->properties()->Get(2 * index));
}
const char* BundleReader::property_value(uint32_t index) const {
  return text(bundle_->properties()->Get(2 * index + 1));
}

uint32_t BundleReader::schema_version() const {
  return reinterpret_cast<const schema::FileHeader*>(data_)->schema_version();
}

uint64_t BundleReader::constants_bytes() const {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count(bundle_->segments()); ++i)
    if (bundle_->segments()->Get(i)->kind() == schema::SegmentKind::constants)
      total += bundle_->segments()->Get(i)->bytes();
  return total;
}

uint64_t BundleReader::code_bytes() const {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count(bundle_->segments()); ++i)
    if (bundle_->segments()->Get(i)->kind() == schema::SegmentKind::code)
      total += bundle_->segments()->Get(i)->bytes();
  return total;
}

uint32_t BundleReader::symbol_count() const { return count(bundle_->symbols()); }

SymbolView BundleReader::symbol(uint32_t index) const {
  const schema::Symbol& s = *bundle_->symbols()->Get(index);
  return {text(s.name()),    s.min(), s.max(), s.multiple_of(), s.kind() == schema::SymbolKind::runtime,
          s.max_expression()};
}

Expression BundleReader::expression(int32_t index) const {
  return code_of(*bundle_->expressions()->Get(static_cast<uint32_t>(index)));
}

bool BundleReader::uses_runtime_symbols(int32_t expression) const {
  return expression >= 0 && runtime::uses_runtime_symbols(*bundle_, this->expression(expression));
}

uint64_t BundleReader::runtime_mask(int32_t expression) const {
  Expression e = this->expression(expression);
  uint64_t mask = 0;
  for (uint32_t i = 0; i < e.steps; ++i) {
    if (e.opcode(i) != Opcode::kSymbol) continue;
    auto index = static_cast<uint32_t>(e.operand(i));
    if (symbol(index).runtime) mask |= uint64_t{1} << index % 64;
  }
  return mask;
}

void BundleReader::append_expression(TextBuilder& text, int32_t expression) const {
  Expression e = this->expression(expression);
  uint16_t begins[kMaxExpressionSteps];
  for (uint32_t i = 0; i < e.steps; ++i)
    begins[i] = e.opcode(i) > Opcode::kSymbol ? begins[begins[i - 1] - 1] : static_cast<uint16_t>(i);
  append_steps(text, e, begins, e.steps, 0);
}

bool add_dim(int64_t dim, uint64_t* elements) {
  return dim >= 0 && multiply(*elements, static_cast<uint64_t>(dim), elements) && *elements <= kMaxArenaBytes;
}

uint32_t BundleReader::arena_count() const { return count(bundle_->arenas()); }

ArenaView BundleReader::arena(uint32_t index) const {
  const schema::Arena& a = *bundle_->arenas()->Get(index);
  const void* contents = a.segment() < 0 ? nullptr : data_ + bundle_->segments()->Get(a.segment())->offset();
  return {static_cast<ArenaKind>(a.kind()),
          a.bytes(),
          a.alignment(),
          contents,
          a.bytes_expression(),
          a.host_access()};
}

uint32_t BundleReader::variant_count() const { return bundle_->variants()->size(); }

const schema::Variant& BundleReader::variant_table(uint32_t index) const {
  uint32_t variants = variant_count();
  return index < variants ? *bundle_->variants()->Get(index) : *bundle_->companions()->Get(index - variants);
}

VariantView BundleReader::variant(uint32_t index) const {
  const schema::Variant& v = variant_table(index);
  const schema::Segment& code = *bundle_->segments()->Get(v.code_segment());
  int32_t companion = v.companion() < 0 ? -1 : static_cast<int32_t>(variant_count()) + v.companion();
  return {
      text(v.target()),      v.arch(),     v.required_features(), static_cast<CodeFormat>(v.code_format()),
      data_ + code.offset(), code.bytes(), v.kernels()->size(),   companion};
}

KernelView BundleReader::kernel(uint32_t variant, uint32_t index) const {
  const schema::Kernel& k = *variant_table(variant).kernels()->Get(index);
  return {text(k.name()), k.scratch_bytes(), k.stack_bytes()};
}

uint32_t BundleReader::entry_point_count() const { return bundle_->entry_points()->size(); }

EntryPointView BundleReader::entry_point(uint32_t index) const {
  const schema::EntryPoint& e = *bundle_->entry_points()->Get(index);
  return {text(e.name()), count(e.inputs()), count(e.outputs()), count(e.states())};
}

const schema::Tensor* BundleReader::signature(uint32_t entry, qnl_tensor_role role, uint32_t index) const {
  const schema::EntryPoint& e = *bundle_->entry_points()->Get(entry);
  return role == QNL_INPUT    ? e.inputs()->Get(index)
         : role == QNL_OUTPUT ? e.outputs()->Get(index)
                              : bundle_->states()->Get(e.states()->Get(index));
}

int32_t BundleReader::dim_expression(uint32_t entry, qnl_tensor_role role, uint32_t index,
                                     uint32_t dim) const {
  const schema::Tensor* t = signature(entry, role, index);
  return dim < count(t->shape_expressions()) ? t->shape_expressions()->Get(dim) : -1;
}

void BundleReader::tensor(uint32_t entry, qnl_tensor_role role, uint32_t index, qnl_tensor* out,
                          uint32_t* arena, uint64_t* offset) const {
  const schema::Tensor* t = signature(entry, role, index);
  *out = {};
  out->name = text(t->name());
  out->dtype = static_cast<qnl_dtype>(t->dtype());
  out->rank = count(t->shape());
  for (uint32_t d = 0; d < out->rank; ++d) out->shape[d] = t->shape()->Get(d);
  out->bytes = t->bytes();
  for (uint32_t d = 0; d < count(t->shape_expressions()); ++d) {
    if (t->shape_expressions()->Get(d) < 0) continue;
    out->shape[d] = -1;
    out->bytes = 0;
  }
  if (arena != nullptr) *arena = t->arena();
  if (offset != nullptr) *offset = t->offset();
}

float BundleReader::scale(uint32_t entry, qnl_tensor_role role, uint32_t index, int32_t* zero_point) const {
  const schema::Tensor* t = signature(entry, role, index);
  *zero_point = t->zero_point();
  return t->scale();
}

uint32_t BundleReader::test_count() const { return count(bundle_->test_vectors()); }

TestView BundleReader::test(uint32_t index) const {
  const schema::TestVector& t = *bundle_->test_vectors()->Get(index);
  return {text(t.name()), t.entry_point(), count(t.tensors())};
}

void BundleReader::test_tensor(uint32_t test, uint32_t index, qnl_test_tensor* out) const {
  const schema::TestVector& vector = *bundle_->test_vectors()->Get(test);
  *out = {};
  auto role = [&](uint32_t i) { return vector.tensors()->Get(i)->output() ? QNL_OUTPUT : QNL_INPUT; };
  uint32_t first_dim = 0;
  for (uint32_t i = 0; i < index; ++i)
    first_dim += count(signature(vector.entry_point(), role(i), vector.tensors()->Get(i)->tensor())->shape());
  const schema::TestTensor& t = *vector.tensors()->Get(index);
  out->role = role(index);
  tensor(vector.entry_point(), out->role, t.tensor(), &out->tensor, nullptr, nullptr);
  out->tensor.bytes = t.bytes();
  out->tensor.data =
      const_cast<uint8_t*>(data_ + bundle_->segments()->Get(t.segment())->offset() + t.offset());
  for (uint32_t d = 0; d < out->tensor.rank; ++d) out->tensor.shape[d] = vector.dims()->Get(first_dim + d);
  const schema::TestTolerance& tolerance = *vector.tolerances()->Get(index);
  out->rtol = tolerance.rtol();
  out->atol = tolerance.atol();
  out->mean_atol = tolerance.mean_atol();
  out->top1 = tolerance.top1() != 0;
}

uint32_t BundleReader::test_tensor_slot(uint32_t test, uint32_t index) const {
  return bundle_->test_vectors()->Get(test)->tensors()->Get(index)->tensor();
}

const schema::Plan* BundleReader::plan(uint32_t entry, uint32_t variant) const {
  return bundle_->entry_points()->Get(entry)->plans()->Get(variant);
}

uint32_t BundleReader::item_count(const schema::Plan* plan) const { return plan->items()->size(); }

ItemView BundleReader::item(const schema::Plan* plan, uint32_t index) const {
  const schema::Item& i = *plan->items()->Get(index);
  ItemView view = {};
  view.kind = static_cast<qnl_item_kind>(i.kind());
  view.kernel = i.kernel();
  view.workgroups = i.workgroups();
  view.binding_count = count(i.bindings());
  view.copy_bytes = i.copy_bytes();
  view.copy_loop_count = count(i.copy_loops());
  for (uint32_t l = 0; l < view.copy_loop_count; ++l) {
    const schema::CopyLoop& loop = *i.copy_loops()->Get(l);
    view.copy_loops[l] = {loop.count(), loop.source_stride(), loop.target_stride()};
  }
  view.callback = text(i.callback());
  view.signature = view.kind == QNL_ITEM_HOST_CALLBACK ? text(i.signature()) : "";
  view.attributes = text(i.attributes());
  view.kernel_class = text(i.kernel_class());
  view.key = text(i.key());
  view.choice = text(i.choice());
  view.source_node = count(i.source_nodes()) == 0 ? "" : text(i.source_nodes()->Get(0));
  view.flops = i.flops();
  view.bytes_read = i.bytes_read();
  view.bytes_written = i.bytes_written();
  view.flops_expression = i.flops_expression();
  view.bytes_read_expression = i.bytes_read_expression();
  view.bytes_written_expression = i.bytes_written_expression();
  view.workgroups_expression = i.workgroups_expression();
  view.copy_bytes_expression = i.copy_bytes_expression();
  view.symbol_count = count(i.symbols());
  view.symbol = i.symbol();
  view.dtype = static_cast<qnl_dtype>(i.dtype());
  view.end = i.end();
  view.else_begin = i.else_begin();
  view.count_expression = i.count_expression();
  view.condition_expression = i.condition_expression();
  if (!i.on_companion()) return view;
  view.kind = QNL_ITEM_COMPANION_DISPATCH;
  for (uint32_t e = 0; e < count(i.edges()); ++e) {
    uint32_t before = i.edges()->Get(e)->item();
    if (view.after <= before && !plan->items()->Get(before)->on_companion()) view.after = before + 1;
  }
  return view;
}

BindingView BundleReader::binding(const schema::Plan* plan, uint32_t item, uint32_t index) const {
  const schema::Item& i = *plan->items()->Get(item);
  const schema::Binding& b = *i.bindings()->Get(index);
  BindingView view = {b.arena(), static_cast<Access>(b.access()), b.offset(), b.bytes(), -1, -1};
  if (count(i.binding_expressions()) == 0) return view;
  view.offset_expression = i.binding_expressions()->Get(index)->offset();
  view.bytes_expression = i.binding_expressions()->Get(index)->bytes();
  return view;
}

int32_t BundleReader::item_symbol(const schema::Plan* plan, uint32_t item, uint32_t index) const {
  return plan->items()->Get(item)->symbols()->Get(index);
}

const char* BundleReader::plan_text(const schema::Plan* plan) const { return text(plan->text()); }

uint32_t BundleReader::workspace_count(const schema::Plan* plan) const { return count(plan->workspaces()); }

uint32_t BundleReader::workspace(const schema::Plan* plan, uint32_t index) const {
  return plan->workspaces()->Get(index);
}

}  // namespace quernel::runtime
