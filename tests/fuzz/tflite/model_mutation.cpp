#include "model_mutation.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "tflite_mutant_generated.h"

namespace quernel::tflite_test {
namespace {

namespace mutant = quernel::tflite_mutant;
using Random = std::mt19937_64;

constexpr uint64_t kSpread = 0x9e3779b97f4a7c15u;

size_t pick(Random& random, size_t count) { return count == 0 ? 0 : static_cast<size_t>(random() % count); }

// A number that importers may take for one of their own, or that is at the edge of a range.
int64_t interesting(Random& random) {
  constexpr int64_t kNumbers[] = {
      0,   1,   2,   3,   4,    5,    7,     8,     16,    31,      -1,        -2,        -3,      63,   64,
      127, 128, 255, 256, 1000, -128, 32767, 65535, 65536, 1 << 20, INT32_MAX, INT32_MIN, 1 << 30, -1000};
  return kNumbers[pick(random, std::size(kNumbers))];
}

float interesting_float(Random& random) {
  constexpr float kNumbers[] = {0, 1, -1, 0.5f, 1e-30f, 1e30f, 3.4e38f, -0.0f, 1e-45f, 6, 127};
  size_t i = pick(random, std::size(kNumbers) + 2);
  if (i == std::size(kNumbers)) return std::numeric_limits<float>::quiet_NaN();
  if (i > std::size(kNumbers)) return std::numeric_limits<float>::infinity();
  return kNumbers[i];
}

// Changes, adds, removes, swaps or repeats an element.
template <class T>
void mutate_list(std::vector<T>& list, Random& random, const std::function<T()>& value) {
  switch (pick(random, 6)) {
    case 0:
      list.insert(list.begin() + static_cast<ptrdiff_t>(pick(random, list.size() + 1)), value());
      return;
    case 1:
      if (!list.empty()) list.erase(list.begin() + static_cast<ptrdiff_t>(pick(random, list.size())));
      return;
    case 2:
      if (!list.empty()) std::swap(list[pick(random, list.size())], list[pick(random, list.size())]);
      return;
    case 3:
      if (!list.empty()) list[pick(random, list.size())] = T(list[pick(random, list.size())]);
      return;
    default:
      if (list.empty())
        list.push_back(value());
      else
        list[pick(random, list.size())] = value();
  }
}

class Mutation {
 public:
  bool options_chosen =
      false;  // a field of an operator's options is to change, too, once the model is packed

  Mutation(mutant::ModelT& model, Random& random) : model_(model), random_(random) {}

  void run() {
    if (model_.subgraphs.empty()) return;
    mutant::SubGraphT& graph = *model_.subgraphs[pick(random_, model_.subgraphs.size())];
    switch (pick(random_, 12)) {
      case 0:
        return lists_of(graph);
      case 1:
      case 2:
      case 3:
        return tensor(graph);
      case 4:
      case 5:
        return quantization(graph);
      case 6:
        return buffer();
      case 7:
        return code();
      case 8:
        return options(graph);
      case 9:
        return swap_options(graph);
      default:
        return operands(graph);
    }
  }

 private:
  bool one_of(size_t n) { return pick(random_, n) == 0; }
  int32_t tensor_number(const mutant::SubGraphT& graph) {
    if (one_of(16)) return static_cast<int32_t>(interesting(random_));
    return one_of(8) ? -1 : static_cast<int32_t>(pick(random_, graph.tensors.size()));
  }
  std::function<int32_t()> numbers_of(const mutant::SubGraphT& graph) {
    return [this, &graph] { return tensor_number(graph); };
  }

  void lists_of(mutant::SubGraphT& graph) {
    switch (pick(random_, 4)) {
      case 0:
        return mutate_list<int32_t>(graph.inputs, random_, numbers_of(graph));
      case 1:
        return mutate_list<int32_t>(graph.outputs, random_, numbers_of(graph));
      case 2:
        if (graph.operators.size() > 1)
          std::swap(graph.operators[pick(random_, graph.operators.size())],
                    graph.operators[pick(random_, graph.operators.size())]);
        return;
      default:
        if (!graph.operators.empty())
          graph.operators.erase(graph.operators.begin() +
                                static_cast<ptrdiff_t>(pick(random_, graph.operators.size())));
    }
  }

  void operands(mutant::SubGraphT& graph) {
    if (graph.operators.empty()) return;
    mutant::OperatorT& node = *graph.operators[pick(random_, graph.operators.size())];
    mutate_list<int32_t>(one_of(4) ? node.outputs : node.inputs, random_, numbers_of(graph));
  }

  void tensor(mutant::SubGraphT& graph) {
    if (graph.tensors.empty()) return;
    mutant::TensorT& t = *graph.tensors[pick(random_, graph.tensors.size())];
    auto dim = [this] {
      return one_of(2) ? static_cast<int32_t>(1 + pick(random_, 9))
                       : static_cast<int32_t>(interesting(random_));
    };
    switch (pick(random_, 8)) {
      case 0:
        t.type = static_cast<mutant::TensorType>(pick(random_, 24));
        return;
      case 1:
        t.buffer = static_cast<uint32_t>(pick(random_, model_.buffers.size() + (one_of(8) ? 2 : 0)));
        return;
      case 2:
        t.is_variable = !t.is_variable;
        return;
      case 3:
        return mutate_list<int32_t>(t.shape_signature, random_, dim);
      case 4:
        t.name = one_of(2) ? "" : graph.tensors[pick(random_, graph.tensors.size())]->name;
        return;
      case 5:
        t.has_rank = !t.has_rank;
        return;
      default:
        return mutate_list<int32_t>(t.shape, random_, dim);
    }
  }

  void quantization(mutant::SubGraphT& graph) {
    if (graph.tensors.empty()) return;
    mutant::TensorT& t = *graph.tensors[pick(random_, graph.tensors.size())];
    if (!t.quantization) {
      const auto& other = graph.tensors[pick(random_, graph.tensors.size())]->quantization;
      t.quantization = std::make_unique<mutant::QuantizationParametersT>(
          other ? *other : mutant::QuantizationParametersT());
    }
    switch (pick(random_, 5)) {
      case 0:
        t.quantization.reset();
        return;
      case 1:
        t.quantization->quantized_dimension = static_cast<int32_t>(interesting(random_));
        return;
      case 2:
        return mutate_list<int64_t>(t.quantization->zero_point, random_,
                                    [this] { return interesting(random_); });
      default:
        return mutate_list<float>(t.quantization->scale, random_,
                                  [this] { return interesting_float(random_); });
    }
  }

  // Data become shorter, longer or others; four of their bytes become a number.
  void buffer() {
    if (model_.buffers.empty()) return;
    mutant::BufferT& b = *model_.buffers[pick(random_, model_.buffers.size())];
    switch (pick(random_, 5)) {
      case 0:
        b.data.resize(pick(random_, b.data.size() + 17));
        return;
      case 1:
        b.data.clear();
        return;
      case 2:
        b.offset = static_cast<uint64_t>(interesting(random_));
        b.size = static_cast<uint64_t>(interesting(random_));
        return;
      default: {
        if (b.data.size() < sizeof(int32_t)) return;
        auto value = static_cast<int32_t>(interesting(random_));
        size_t at = pick(random_, b.data.size() / sizeof value) * sizeof value;
        std::copy_n(reinterpret_cast<const uint8_t*>(&value), sizeof value,
                    b.data.begin() + static_cast<ptrdiff_t>(at));
      }
    }
  }

  void code() {
    if (model_.operator_codes.empty()) return;
    mutant::OperatorCodeT& c = *model_.operator_codes[pick(random_, model_.operator_codes.size())];
    constexpr size_t kOperators = 210;  // the format has 206
    int number = static_cast<int>(pick(random_, kOperators));
    c.builtin_code = static_cast<mutant::BuiltinOperator>(number);
    c.deprecated_builtin_code = static_cast<int8_t>(std::min(number, 127));
    if (one_of(4)) c.custom_code = "TFLite_Detection_PostProcess";
  }

  // Of custom operators, here; of others, in the packed model.
  void options(mutant::SubGraphT& graph) {
    if (graph.operators.empty()) return;
    mutant::OperatorT& node = *graph.operators[pick(random_, graph.operators.size())];
    if (!node.custom_options.empty() && one_of(2)) {
      node.custom_options[pick(random_, node.custom_options.size())] = static_cast<uint8_t>(random_());
      return;
    }
    options_chosen = true;
  }

  void swap_options(mutant::SubGraphT& graph) {
    if (graph.operators.empty()) return;
    mutant::OperatorT& a = *graph.operators[pick(random_, graph.operators.size())];
    const mutant::SubGraphT& other = *model_.subgraphs[pick(random_, model_.subgraphs.size())];
    if (other.operators.empty() || one_of(3)) {
      a.builtin_options.Reset();
      return;
    }
    a.opcode_index =
        static_cast<uint32_t>(pick(random_, model_.operator_codes.size() + (one_of(16) ? 1 : 0)));
  }

  mutant::ModelT& model_;
  Random& random_;
};

// The scalars of an operator's options in a packed model, as FlatBuffers lay them out, get other values.
void mutate_options(ModelBytes& bytes, Random& random) {
  const auto* model = mutant::GetModel(bytes.data());
  if (!model->subgraphs() || model->subgraphs()->size() == 0) return;
  const auto* graph =
      model->subgraphs()->Get(static_cast<uint32_t>(pick(random, model->subgraphs()->size())));
  if (!graph->operators() || graph->operators()->size() == 0) return;
  const auto* node = graph->operators()->Get(static_cast<uint32_t>(pick(random, graph->operators()->size())));
  const auto* options = static_cast<const flatbuffers::Table*>(
      node->builtin_options_2() && pick(random, 2) == 0 ? node->builtin_options_2()
                                                        : node->builtin_options());
  if (!options) return;
  const uint8_t* vtable = options->GetVTable();
  size_t fields =
      flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable) / sizeof(flatbuffers::voffset_t) - 2;
  if (fields == 0) return;
  size_t table_bytes =
      flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + sizeof(flatbuffers::voffset_t));
  auto offset = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + (2 + pick(random, fields)) *
                                                                             sizeof(flatbuffers::voffset_t));
  if (offset == 0) return;
  auto* field = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(options)) + offset;
  auto value = static_cast<int32_t>(interesting(random));
  size_t size = std::min<size_t>(pick(random, 2) == 0 ? 1 : sizeof value, table_bytes - offset);
  std::copy_n(reinterpret_cast<const uint8_t*>(&value), size, field);
}

ModelBytes pack(const mutant::ModelT& model) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(mutant::Model::Pack(builder, &model), "TFL3");
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

void mutate_bytes(ModelBytes& bytes, const ModelBytes& other, Random& random) {
  switch (pick(random, 5)) {
    case 0:
      bytes.resize(pick(random, bytes.size()));
      return;
    case 1: {
      size_t from = pick(random, other.size()), to = pick(random, bytes.size());
      size_t count = std::min({pick(random, 64), other.size() - from, bytes.size() - to});
      std::copy_n(other.begin() + static_cast<ptrdiff_t>(from), count,
                  bytes.begin() + static_cast<ptrdiff_t>(to));
      return;
    }
    case 2: {
      auto begin = bytes.begin() + static_cast<ptrdiff_t>(pick(random, bytes.size()));
      bytes.erase(begin, begin + std::min<ptrdiff_t>(1 + static_cast<ptrdiff_t>(pick(random, 16)),
                                                     bytes.end() - begin));
      return;
    }
    default:
      for (size_t i = 1 + pick(random, 8); i-- > 0;)
        bytes[pick(random, bytes.size())] ^= static_cast<uint8_t>(1u << pick(random, 8));
  }
}

}  // namespace

ModelBytes mutant_of(const std::vector<ModelBytes>& models, uint64_t index) {
  Random random(index * kSpread + 1);
  ModelBytes bytes = models[pick(random, models.size())];
  if (pick(random, 4) == 0) {
    mutate_bytes(bytes, models[pick(random, models.size())], random);
    return bytes;
  }
  std::unique_ptr<mutant::ModelT> model(mutant::GetModel(bytes.data())->UnPack());
  Mutation mutation(*model, random);
  for (size_t i = 1 + pick(random, 4); i-- > 0;) mutation.run();
  bytes = pack(*model);
  if (mutation.options_chosen) mutate_options(bytes, random);
  return bytes;
}

}  // namespace quernel::tflite_test
