// schemas/bundle_generated.h with accessors that share their code. FlatBuffers' own accessors look up a field
// in the table's vtable at every read, which made up a third of the bundle reader's code. Here a lookup is a
// call of a function optimised for size. Everything that reads bundles must include this header, never the
// generated one, so that a program has one kind of accessor.
#pragma once

#include <stdint.h>

#include "flatbuffers/flatbuffers.h"

// Without optimisation for size, loading is optimised for speed.
#ifdef __OPTIMIZE_SIZE__
#define QUERNEL_SHARED __attribute__((noinline))
#else
#define QUERNEL_SHARED
#endif

namespace quernel::schema {

// Returns the address of a field; null if the table does not have it.
QUERNEL_SHARED inline const uint8_t* field_of(const void* table, uint32_t field) {
  const auto* begin = static_cast<const uint8_t*>(table);
  const uint8_t* vtable = begin - flatbuffers::ReadScalar<flatbuffers::soffset_t>(begin);
  if (field >= flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable)) return nullptr;
  uint32_t offset = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + field);
  return offset == 0 ? nullptr : begin + offset;
}

// An empty vector or string, for tables without the field. Compilers must not know that it is used: they
// would warn of elements that are never read.
inline constexpr flatbuffers::uoffset_t kNoElements[2] = {};
inline const void* no_elements() {
  const void* vector = kNoElements;
  __asm__("" : "+r"(vector));
  return vector;
}

// Returns the vector or string that the field points to; never null.
QUERNEL_SHARED inline const void* target_of(const void* table, uint32_t field) {
  const uint8_t* at = field_of(table, field);
  if (at == nullptr) return no_elements();
  return at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at);
}

// Returns table `index` of a vector of tables.
QUERNEL_SHARED inline const void* element_of(const void* vector, uint32_t index) {
  const uint8_t* at = static_cast<const uint8_t*>(vector) + sizeof(flatbuffers::uoffset_t) * (1 + index);
  return at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at);
}

template <class T>
QUERNEL_SHARED T number_of(const void* table, uint32_t field, T absent) {
  const uint8_t* at = field_of(table, field);
  return at == nullptr ? absent : flatbuffers::ReadScalar<T>(at);
}

// Most fields have the same default, which is therefore not passed.
template <class T, int kAbsent>
QUERNEL_SHARED T number_or(const void* table, uint32_t field) {
  const uint8_t* at = field_of(table, field);
  return at == nullptr ? static_cast<T>(kAbsent) : flatbuffers::ReadScalar<T>(at);
}

struct Arena;
struct Binding;
struct BindingExpressions;
struct CopyLoop;
struct Edge;
struct EntryPoint;
struct Item;
struct Kernel;
struct Plan;
struct Segment;
struct SizeExpression;
struct Symbol;
struct Tensor;
struct TestTensor;
struct TestTolerance;
struct TestVector;
struct Variant;

}  // namespace quernel::schema
#undef QUERNEL_SHARED

namespace flatbuffers {

#define QUERNEL_NUMBER(T)                                                                                  \
  template <>                                                                                              \
  inline T Table::GetField<T>(voffset_t field, T absent) const {                                           \
    if (__builtin_constant_p(absent) && absent == 0) return quernel::schema::number_or<T, 0>(this, field); \
    if (__builtin_constant_p(absent) && absent == static_cast<T>(-1))                                      \
      return quernel::schema::number_or<T, -1>(this, field);                                               \
    return quernel::schema::number_of<T>(this, field, absent);                                             \
  }
QUERNEL_NUMBER(uint8_t)
QUERNEL_NUMBER(int32_t)
QUERNEL_NUMBER(uint32_t)
QUERNEL_NUMBER(int64_t)
QUERNEL_NUMBER(uint64_t)
#undef QUERNEL_NUMBER

#define QUERNEL_TARGET(...)                                                                \
  template <>                                                                              \
  inline const __VA_ARGS__* Table::GetPointer<const __VA_ARGS__*>(voffset_t field) const { \
    return static_cast<const __VA_ARGS__*>(quernel::schema::target_of(this, field));       \
  }
QUERNEL_TARGET(String)
QUERNEL_TARGET(Vector<int32_t>)
QUERNEL_TARGET(Vector<uint32_t>)
QUERNEL_TARGET(Vector<int64_t>)
QUERNEL_TARGET(Vector<Offset<String>>)
QUERNEL_TARGET(Vector<const quernel::schema::Binding*>)
QUERNEL_TARGET(Vector<const quernel::schema::BindingExpressions*>)
QUERNEL_TARGET(Vector<const quernel::schema::CopyLoop*>)
QUERNEL_TARGET(Vector<const quernel::schema::Edge*>)
QUERNEL_TARGET(Vector<const quernel::schema::Segment*>)
QUERNEL_TARGET(Vector<const quernel::schema::TestTensor*>)
QUERNEL_TARGET(Vector<const quernel::schema::TestTolerance*>)
QUERNEL_TARGET(Vector<Offset<quernel::schema::Arena>>)
QUERNEL_TARGET(Vector<Offset<quernel::schema::EntryPoint>>)
QUERNEL_TARGET(Vector<Offset<quernel::schema::Item>>)
QUERNEL_TARGET(Vector<Offset<quernel::schema::Kernel>>)
QUERNEL_TARGET(Vector<Offset<quernel::schema::Plan>>)
QUERNEL_TARGET(Vector<Offset<quernel::schema::SizeExpression>>)
QUERNEL_TARGET(Vector<Offset<quernel::schema::Symbol>>)
QUERNEL_TARGET(Vector<Offset<quernel::schema::Tensor>>)
QUERNEL_TARGET(Vector<Offset<quernel::schema::TestVector>>)
QUERNEL_TARGET(Vector<Offset<quernel::schema::Variant>>)
#undef QUERNEL_TARGET

#define QUERNEL_ELEMENT(T)                                                                      \
  template <>                                                                                   \
  inline const quernel::schema::T* Vector<Offset<quernel::schema::T>>::Get(uoffset_t i) const { \
    return static_cast<const quernel::schema::T*>(quernel::schema::element_of(this, i));        \
  }
QUERNEL_ELEMENT(Arena)
QUERNEL_ELEMENT(EntryPoint)
QUERNEL_ELEMENT(Item)
QUERNEL_ELEMENT(Kernel)
QUERNEL_ELEMENT(Plan)
QUERNEL_ELEMENT(SizeExpression)
QUERNEL_ELEMENT(Symbol)
QUERNEL_ELEMENT(Tensor)
QUERNEL_ELEMENT(TestVector)
QUERNEL_ELEMENT(Variant)
#undef QUERNEL_ELEMENT

}  // namespace flatbuffers

#include "schemas/bundle_generated.h"
