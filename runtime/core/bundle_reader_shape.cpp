#include "core/bundle_reader_shape.h"

#include <stddef.h>
#include <string.h>

#include "schemas/bundle_tables.h"

namespace quernel::runtime {
namespace {

// The tables of bundle.fbs, and where each of their lists of fields begins in kFields.
enum Table : uint8_t {
  kArena,
  kBundle,
  kEntryPoint,
  kItem,
  kKernel,
  kPlan,
  kSizeExpression,
  kSymbol,
  kTensor,
  kTestVector,
  kVariant,
};

enum Kind : uint8_t { kUnused, kNumber, kString, kVector, kStrings, kTables };

struct Field {
  uint8_t required : 1;
  uint8_t kind : 7;
  uint8_t detail;  // bytes of the number or of an element of the vector, or the table
};

// Which kind a field is follows from the type that the generated accessor returns.
template <class T>
inline constexpr Table kTableOf = T::is_not_a_table_of_the_schema;
template <>
inline constexpr Table kTableOf<schema::Arena> = kArena;
template <>
inline constexpr Table kTableOf<schema::EntryPoint> = kEntryPoint;
template <>
inline constexpr Table kTableOf<schema::Item> = kItem;
template <>
inline constexpr Table kTableOf<schema::Kernel> = kKernel;
template <>
inline constexpr Table kTableOf<schema::Plan> = kPlan;
template <>
inline constexpr Table kTableOf<schema::SizeExpression> = kSizeExpression;
template <>
inline constexpr Table kTableOf<schema::Symbol> = kSymbol;
template <>
inline constexpr Table kTableOf<schema::Tensor> = kTensor;
template <>
inline constexpr Table kTableOf<schema::TestVector> = kTestVector;
template <>
inline constexpr Table kTableOf<schema::Variant> = kVariant;

template <class T>
struct FieldOf {
  static constexpr Field kField = {0, kNumber, sizeof(T)};
};
template <>
struct FieldOf<const flatbuffers::String*> {
  static constexpr Field kField = {0, kString, 1};
};
template <class T>
struct FieldOf<const flatbuffers::Vector<T>*> {
  static constexpr Field kField = {0, kVector, sizeof(T)};
};
template <class T>
struct FieldOf<const flatbuffers::Vector<const T*>*> {
  static constexpr Field kField = {0, kVector, sizeof(T)};
};
template <>
struct FieldOf<const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>*> {
  static constexpr Field kField = {0, kStrings, 0};
};
template <class T>
struct FieldOf<const flatbuffers::Vector<flatbuffers::Offset<T>>*> {
  static constexpr Field kField = {0, kTables, kTableOf<T>};
};

template <class T, class R>
constexpr Field field(R (T::*)() const) {
  return FieldOf<R>::kField;
}
template <class T, class R>
constexpr Field required(R (T::*)() const) {
  Field f = FieldOf<R>::kField;
  f.required = 1;
  return f;
}
constexpr Field kDeprecated = {0, kUnused, 0};

template <class T, class... Arguments>
constexpr size_t field_count(flatbuffers::Offset<T> (*)(flatbuffers::FlatBufferBuilder&, Arguments...)) {
  return sizeof...(Arguments);
}

template <size_t kCount>
struct Fields {
  uint8_t count;
  Field fields[kCount];
  constexpr size_t current() const {  // those that are not deprecated
    size_t n = 0;
    for (const Field& f : fields) n += f.kind != kUnused ? 1 : 0;
    return n;
  }
};

// Fields in the order of bundle.fbs. `Create…` has an argument for each, so that none is forgotten.
template <class... F>
constexpr Fields<sizeof...(F)> list(F... f) {
  return {sizeof...(F), {f...}};
}
constexpr auto kArenaFields =
    list(field(&schema::Arena::name), field(&schema::Arena::kind), field(&schema::Arena::bytes),
         field(&schema::Arena::alignment), field(&schema::Arena::segment),
         field(&schema::Arena::bytes_expression), field(&schema::Arena::host_access));
static_assert(kArenaFields.current() == field_count(&schema::CreateArena));
constexpr auto kBundleFields =
    list(field(&schema::Bundle::producer), field(&schema::Bundle::segments), field(&schema::Bundle::symbols),
         field(&schema::Bundle::expressions), field(&schema::Bundle::arenas), field(&schema::Bundle::states),
         required(&schema::Bundle::variants), required(&schema::Bundle::entry_points),
         field(&schema::Bundle::test_vectors), field(&schema::Bundle::companions),
         field(&schema::Bundle::rounding), field(&schema::Bundle::properties));
static_assert(kBundleFields.current() == field_count(&schema::CreateBundle));
constexpr auto kEntryPointFields =
    list(required(&schema::EntryPoint::name), field(&schema::EntryPoint::inputs),
         field(&schema::EntryPoint::outputs), field(&schema::EntryPoint::states),
         required(&schema::EntryPoint::plans));
static_assert(kEntryPointFields.current() == field_count(&schema::CreateEntryPoint));
constexpr auto kItemFields =
    list(field(&schema::Item::kind), field(&schema::Item::kernel), field(&schema::Item::workgroups),
         field(&schema::Item::workgroups_expression), field(&schema::Item::bindings),
         field(&schema::Item::edges), field(&schema::Item::copy_bytes), field(&schema::Item::copy_loops),
         field(&schema::Item::callback), field(&schema::Item::flops), field(&schema::Item::bytes_read),
         field(&schema::Item::bytes_written), field(&schema::Item::source_nodes),
         field(&schema::Item::symbols), field(&schema::Item::copy_bytes_expression),
         field(&schema::Item::binding_expressions), field(&schema::Item::symbol), field(&schema::Item::dtype),
         field(&schema::Item::end), field(&schema::Item::else_begin), field(&schema::Item::count_expression),
         field(&schema::Item::condition_expression), field(&schema::Item::signature),
         field(&schema::Item::attributes), field(&schema::Item::flops_expression),
         field(&schema::Item::bytes_read_expression), field(&schema::Item::bytes_written_expression),
         field(&schema::Item::kernel_class), field(&schema::Item::key), field(&schema::Item::choice),
         field(&schema::Item::on_companion));
static_assert(kItemFields.current() == field_count(&schema::CreateItem));
constexpr auto kKernelFields = list(required(&schema::Kernel::name), field(&schema::Kernel::scratch_bytes),
                                    field(&schema::Kernel::stack_bytes));
static_assert(kKernelFields.current() == field_count(&schema::CreateKernel));
constexpr auto kPlanFields = list(field(&schema::Plan::variant), required(&schema::Plan::items),
                                  field(&schema::Plan::workspaces), field(&schema::Plan::text));
static_assert(kPlanFields.current() == field_count(&schema::CreatePlan));
constexpr auto kSizeExpressionFields = list(required(&schema::SizeExpression::code));
static_assert(kSizeExpressionFields.current() == field_count(&schema::CreateSizeExpression));
constexpr auto kSymbolFields = list(required(&schema::Symbol::name), field(&schema::Symbol::min),
                                    field(&schema::Symbol::max), field(&schema::Symbol::multiple_of),
                                    field(&schema::Symbol::kind), field(&schema::Symbol::max_expression));
static_assert(kSymbolFields.current() == field_count(&schema::CreateSymbol));
constexpr auto kTensorFields = list(
    required(&schema::Tensor::name), field(&schema::Tensor::dtype), field(&schema::Tensor::shape),
    field(&schema::Tensor::shape_expressions), field(&schema::Tensor::bytes), field(&schema::Tensor::arena),
    field(&schema::Tensor::offset), field(&schema::Tensor::scale), field(&schema::Tensor::zero_point));
static_assert(kTensorFields.current() == field_count(&schema::CreateTensor));
constexpr auto kTestVectorFields =
    list(field(&schema::TestVector::name), field(&schema::TestVector::entry_point),
         field(&schema::TestVector::tensors), kDeprecated, kDeprecated, field(&schema::TestVector::dims),
         field(&schema::TestVector::tolerances));
static_assert(kTestVectorFields.current() == field_count(&schema::CreateTestVector));
constexpr auto kVariantFields =
    list(required(&schema::Variant::target), field(&schema::Variant::arch),
         field(&schema::Variant::required_features), field(&schema::Variant::code_format),
         field(&schema::Variant::code_segment), required(&schema::Variant::kernels),
         field(&schema::Variant::companion));
static_assert(kVariantFields.current() == field_count(&schema::CreateVariant));

struct AllFields {
  decltype(kArenaFields) arena = kArenaFields;
  decltype(kBundleFields) bundle = kBundleFields;
  decltype(kEntryPointFields) entrypoint = kEntryPointFields;
  decltype(kItemFields) item = kItemFields;
  decltype(kKernelFields) kernel = kKernelFields;
  decltype(kPlanFields) plan = kPlanFields;
  decltype(kSizeExpressionFields) sizeexpression = kSizeExpressionFields;
  decltype(kSymbolFields) symbol = kSymbolFields;
  decltype(kTensorFields) tensor = kTensorFields;
  decltype(kTestVectorFields) testvector = kTestVectorFields;
  decltype(kVariantFields) variant = kVariantFields;
};
constexpr AllFields kFields;
static_assert(alignof(AllFields) == 1 && sizeof(AllFields) < 256);
constexpr uint8_t kFieldsOf[] = {
    offsetof(AllFields, arena),          offsetof(AllFields, bundle),  offsetof(AllFields, entrypoint),
    offsetof(AllFields, item),           offsetof(AllFields, kernel),  offsetof(AllFields, plan),
    offsetof(AllFields, sizeexpression), offsetof(AllFields, symbol),  offsetof(AllFields, tensor),
    offsetof(AllFields, testvector),     offsetof(AllFields, variant),
};

class ShapeVerifier {
 public:
  ShapeVerifier(const uint8_t* structure, uint32_t bytes, uint32_t max_work)
      : structure_(structure), bytes_(bytes), work_left_(max_work) {}

  bool verify() {
    uint32_t root = 0;
    return bytes_ >= 8 && memcmp(structure_ + 4, schema::BundleIdentifier(), 4) == 0 && follow(0, &root) &&
           root != 0 && table(root, kBundle);
  }

 private:
  template <class T>
  T read(uint32_t at) const {
    return flatbuffers::ReadScalar<T>(structure_ + at);
  }

  // `at` may be anything that 32 bits hold.
  bool inside(uint32_t at, uint32_t bytes, uint32_t alignment) const {
    return bytes < bytes_ && at <= bytes_ - bytes && at % alignment == 0;
  }

  bool follow(uint32_t at, uint32_t* target) const {
    if (!inside(at, 4, 4)) return false;
    uint32_t offset = read<uint32_t>(at);
    *target = at + offset;
    return offset < 1u << 31 && inside(*target, 1, 1);
  }

  bool spend(uint32_t work) {
    if (work > work_left_) return false;
    work_left_ -= work;
    return true;
  }

  // elements: those of the vector, which lies inside with all of them. Its bytes are its work; those of a
  // string, which the writer shares, an eighth of them.
  bool vector(uint32_t at, uint32_t element, uint32_t* elements) {
    if (!inside(at, 4, 4)) return false;
    *elements = read<uint32_t>(at);
    if (*elements >= (1u << 31) / element) return false;
    uint32_t bytes = *elements * element;
    return inside(at, 4 + bytes, 4) && spend(1 + (element == 1 ? bytes / 8 : bytes));
  }

  bool string(uint32_t at) {
    uint32_t characters = 0;
    return vector(at, 1, &characters) && inside(at + 4 + characters, 1, 1) &&
           structure_[at + 4 + characters] == 0;
  }

  bool target(uint32_t at, const Field& field) {
    uint32_t elements = 0;
    if (field.kind == kString) return string(at);
    if (field.kind == kVector) return vector(at, field.detail, &elements);
    if (!vector(at, 4, &elements)) return false;
    for (uint32_t i = 0; i < elements; ++i) {
      uint32_t element = 0;
      if (!follow(at + 4 + 4 * i, &element)) return false;
      if (!(field.kind == kStrings ? string(element) : table(element, field.detail))) return false;
    }
    return true;
  }

  // Of the least table that the writer makes.
  static constexpr uint32_t kTableWork = 8;

  // Recursion is as deep as tables of the schema contain one another, five.
  bool table(uint32_t at, uint32_t type) {
    if (!spend(kTableWork) || !inside(at, 4, 4)) return false;
    uint32_t vtable = at - read<uint32_t>(at);
    if (!inside(vtable, 2, 2)) return false;
    uint32_t vtable_bytes = read<uint16_t>(vtable);
    if (!inside(vtable, vtable_bytes, 2) || vtable_bytes % 2 != 0) return false;
    const uint8_t* list = reinterpret_cast<const uint8_t*>(&kFields) + kFieldsOf[type];
    const Field* fields = reinterpret_cast<const Field*>(list + 1);
    for (uint32_t i = 0; i < *list; ++i) {
      const Field& field = fields[i];
      uint32_t slot = 4 + 2 * i, offset = slot < vtable_bytes ? read<uint16_t>(vtable + slot) : 0u;
      if (offset == 0) {
        if (field.required) return false;
        continue;
      }
      uint32_t to = 0;
      if (field.kind == kUnused) continue;
      if (!(field.kind == kNumber ? inside(at + offset, field.detail, field.detail)
                                  : follow(at + offset, &to) && to != at + offset && target(to, field)))
        return false;
    }
    return true;
  }

  const uint8_t* structure_;
  uint32_t bytes_, work_left_;
};

}  // namespace

bool verify_shape(const uint8_t* structure, uint32_t bytes, uint32_t max_work) {
  return ShapeVerifier(structure, bytes, max_work).verify();
}

}  // namespace quernel::runtime
