#include "bundle/read_bundle.h"

#include <map>

#include "schemas/bundle_tables.h"

namespace quernel::bundle {
namespace {

std::string text(const flatbuffers::String* s) { return s == nullptr ? "" : s->str(); }

// Each element of a vector that may be missing.
template <class Vector, class Visit>
void each(const Vector* vector, Visit visit) {
  for (uint32_t i = 0; vector != nullptr && i < vector->size(); ++i) visit(*vector->Get(i));
}
template <class T>
std::vector<T> numbers(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? std::vector<T>() : std::vector<T>(vector->begin(), vector->end());
}

class Reader {
 public:
  Reader(const std::byte* file, const schema::Bundle& bundle) : file_(file), bundle_(bundle) {}

  BundleContents run() {
    contents_.producer = text(bundle_.producer());
    contents_.rounding = text(bundle_.rounding());
    for (uint32_t i = 0; bundle_.properties() && i + 1 < bundle_.properties()->size(); i += 2)
      contents_.properties.emplace_back(text(bundle_.properties()->Get(i)),
                                        text(bundle_.properties()->Get(i + 1)));
    each(bundle_.symbols(), [&](const schema::Symbol& s) {
      contents_.symbols.push_back({text(s.name()), s.min(), s.max(), s.multiple_of(),
                                   static_cast<SymbolKind>(s.kind()), s.max_expression()});
    });
    each(bundle_.expressions(),
         [&](const schema::SizeExpression& e) { contents_.expressions.push_back({numbers(e.code())}); });
    add_constants();
    each(bundle_.arenas(), [&](const schema::Arena& a) {
      contents_.arenas.push_back({text(a.name()), static_cast<ArenaKind>(a.kind()), a.bytes(), a.alignment(),
                                  a.segment() < 0 ? -1 : constants_.at(static_cast<uint32_t>(a.segment())),
                                  a.bytes_expression(), 0, a.host_access()});
    });
    contents_.states = tensors(bundle_.states());
    each(bundle_.variants(), [&](const schema::Variant& v) { contents_.variants.push_back(variant(v)); });
    each(bundle_.companions(), [&](const schema::Variant& v) { contents_.companions.push_back(variant(v)); });
    each(bundle_.entry_points(), [&](const schema::EntryPoint& e) { add_entry(e); });
    each(bundle_.test_vectors(), [&](const schema::TestVector& t) { add_test(t); });
    return std::move(contents_);
  }

 private:
  std::span<const std::byte> bytes_of(const schema::Segment& s) const {
    return {file_ + s.offset(), static_cast<size_t>(s.bytes())};
  }
  const schema::Segment& segment(uint32_t index) const { return *bundle_.segments()->Get(index); }

  void add_constants() {
    for (uint32_t i = 0; i < bundle_.segments()->size(); ++i) {
      if (segment(i).kind() != schema::SegmentKind::constants) continue;
      constants_[i] = static_cast<int32_t>(contents_.constants.size());
      ConstantsSegment& to = contents_.constants.emplace_back();
      to.bytes = segment(i).bytes();
      if (to.bytes > 0) to.pieces.push_back({0, to.bytes, bytes_of(segment(i)), nullptr});
    }
  }

  template <class Vector>
  std::vector<Tensor> tensors(const Vector* vector) const {
    std::vector<Tensor> list;
    each(vector, [&](const schema::Tensor& t) {
      list.push_back({text(t.name()), static_cast<DType>(t.dtype()), numbers(t.shape()),
                      numbers(t.shape_expressions()), t.bytes(), t.arena(), t.offset(), t.scale(),
                      t.zero_point()});
    });
    return list;
  }

  Variant variant(const schema::Variant& v) const {
    Variant to{text(v.target()), v.arch(), v.required_features(), static_cast<CodeFormat>(v.code_format())};
    to.code_view = bytes_of(segment(v.code_segment()));
    each(v.kernels(), [&](const schema::Kernel& k) {
      to.kernels.push_back({text(k.name()), k.scratch_bytes(), k.stack_bytes()});
    });
    to.companion = v.companion();
    return to;
  }

  void add_entry(const schema::EntryPoint& e) {
    EntryPoint to{text(e.name()), tensors(e.inputs()), tensors(e.outputs()), numbers(e.states())};
    each(e.plans(), [&](const schema::Plan& p) {
      Plan& plan = to.plans.emplace_back();
      plan.variant = p.variant();
      plan.text = text(p.text());
      each(p.items(), [&](const schema::Item& i) { plan.items.push_back(item(i)); });
    });
    contents_.entry_points.push_back(std::move(to));
  }

  static Item item(const schema::Item& i) {
    Item to;
    to.kind = static_cast<ItemKind>(i.kind());
    to.kernel = i.kernel();
    to.workgroups = i.workgroups();
    to.workgroups_expression = i.workgroups_expression();
    each(i.bindings(), [&](const schema::Binding& b) {
      to.bindings.push_back({b.arena(), static_cast<Access>(b.access()), b.offset(), b.bytes()});
    });
    size_t binding = 0;
    each(i.binding_expressions(), [&](const schema::BindingExpressions& b) {
      to.bindings[binding].offset_expression = b.offset();
      to.bindings[binding++].bytes_expression = b.bytes();
    });
    each(i.edges(), [&](const schema::Edge& e) {
      to.edges.push_back({e.item(), static_cast<EdgeKind>(e.kind())});
    });
    to.copy_bytes = i.copy_bytes();
    each(i.copy_loops(), [&](const schema::CopyLoop& l) {
      to.copy_loops.push_back({l.count(), l.source_stride(), l.target_stride()});
    });
    to.callback = text(i.callback());
    to.signature = text(i.signature());
    to.attributes = text(i.attributes());
    to.flops = i.flops();
    to.bytes_read = i.bytes_read();
    to.bytes_written = i.bytes_written();
    to.flops_expression = i.flops_expression();
    to.bytes_read_expression = i.bytes_read_expression();
    to.bytes_written_expression = i.bytes_written_expression();
    each(i.source_nodes(), [&](const flatbuffers::String& name) { to.source_nodes.push_back(name.str()); });
    to.kernel_class = text(i.kernel_class());
    to.key = text(i.key());
    to.choice = text(i.choice());
    to.symbols = numbers(i.symbols());
    to.copy_bytes_expression = i.copy_bytes_expression();
    to.symbol = i.symbol();
    to.on_companion = i.on_companion();
    to.dtype = static_cast<DType>(i.dtype());
    to.end = i.end();
    to.else_begin = i.else_begin();
    to.count_expression = i.count_expression();
    to.condition_expression = i.condition_expression();
    return to;
  }

  void add_test(const schema::TestVector& t) {
    TestVector& to = contents_.test_vectors.emplace_back();
    to.name = text(t.name());
    to.entry_point = t.entry_point();
    const EntryPoint& entry = contents_.entry_points[to.entry_point];
    uint32_t dim = 0;
    for (uint32_t i = 0; t.tensors() != nullptr && i < t.tensors()->size(); ++i) {
      const schema::TestTensor& from = *t.tensors()->Get(i);
      TestTensor& tensor = to.tensors.emplace_back();
      tensor.tensor = from.tensor();
      tensor.output = from.output();
      std::span<const std::byte> values = bytes_of(segment(from.segment()));
      values = values.subspan(static_cast<size_t>(from.offset()), static_cast<size_t>(from.bytes()));
      tensor.value.assign(values.begin(), values.end());
      size_t rank = (from.output() ? entry.outputs : entry.inputs)[from.tensor()].shape.size();
      for (size_t d = 0; d < rank; ++d) tensor.shape.push_back(t.dims()->Get(dim++));
      const schema::TestTolerance& tolerance = *t.tolerances()->Get(i);
      tensor.tolerance = {tolerance.rtol(), tolerance.atol(), tolerance.mean_atol(), tolerance.top1() != 0};
    }
  }

  const std::byte* file_;
  const schema::Bundle& bundle_;
  BundleContents contents_;
  std::map<uint32_t, int32_t> constants_;  // index of a ConstantsSegment by that of its segment
};

}  // namespace

BundleContents read_bundle(std::span<const std::byte> file) {
  const auto& header = *reinterpret_cast<const schema::FileHeader*>(file.data());
  return Reader(file.data(), *schema::GetBundle(file.data() + header.structure_offset())).run();
}

}  // namespace quernel::bundle
