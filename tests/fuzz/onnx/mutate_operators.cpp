// Systematic faults: of every operator's node, each attribute absent, of another type or extreme, each
// operand absent, computed, of another rank, dtype or size, and outputs too few or too many. The importer
// must answer with diagnostics or a graph that verifies.
//   onnx_mutate_operators [--seeds-per-operator N] [--only OPERATOR] [--first I] [--count N] FOLDER...
// A FOLDER holds models, as *.onnx or as FOLDER/TEST/model.onnx. Fails also where no model has some operator
// of the table. --first and --count are of seeds. Each seed's mutants run in a process of their own, so that
// a crash is counted and the rest goes on.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "frontends/onnx/import_model.h"
#include "graph/verify.h"
#include "model_builder.h"
#include "model_files.h"
#include "processor_time.h"

namespace fs = std::filesystem;
using namespace quernel;
using namespace quernel::onnx_test;
using quernel::testing::end_after;

namespace {

constexpr long kSecondsPerModel = 10;
constexpr int kMostOperands = 16;  // of a seed
constexpr int64_t kExtremes[] = {-1, 0, 1, 7, int64_t{1} << 40, INT64_MAX, INT64_MIN};

std::string operator_of(const onnx::NodeProto& node) {
  std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
  return domain.empty() ? node.op_type() : domain + "." + node.op_type();
}

const std::set<std::string>& table_operators() {
  static const std::set<std::string> names = [] {
    struct Row {
      const char *domain, *name;
    };
    static const Row rows[] = {
#define QUERNEL_ONNX(domain, name, since, until, min_inputs, max_inputs, function) {domain, #name},
#include "frontends/onnx/operators.def"
    };
    std::set<std::string> all{"If", "SequenceMap"};
    for (const Row& row : rows)
      all.insert(row.domain[0] ? std::string(row.domain) + "." + row.name : std::string(row.name));
    return all;
  }();
  return names;
}

// A seed: a model, one of whose nodes is mutated.
struct Seed {
  std::string file;
  onnx::ModelProto model;
  int node = 0;
};

// What tells seeds of one operator apart: how many operands, which attributes.
std::string form_of(const onnx::NodeProto& node) {
  std::set<std::string> attributes;
  for (const auto& a : node.attribute()) attributes.insert(a.name());
  std::string text = std::to_string(node.input_size()) + ">" + std::to_string(node.output_size());
  for (const std::string& a : attributes) text += "," + a;
  return text;
}

// Up to `most` seeds of every operator, as many forms as there are.
std::vector<Seed> choose_seeds(const std::vector<fs::path>& folders, size_t most, const std::string& only) {
  std::map<std::string, std::set<std::string>> forms;
  std::vector<Seed> seeds;
  for (const fs::path& folder : folders)
    for (const fs::path& path : models_in(folder)) {
      std::ifstream file(path, std::ios::binary);
      onnx::ModelProto model;
      if (!model.ParseFromIstream(&file) || model.ByteSizeLong() > (1 << 20)) continue;
      for (int i = 0; i < model.graph().node_size(); ++i) {
        const onnx::NodeProto& node = model.graph().node(i);
        std::string name = operator_of(node);
        if (node.input_size() > kMostOperands) continue;  // each operand has mutants with every other
        if ((!only.empty() && name != only) || !table_operators().count(name) || forms[name].size() >= most ||
            !forms[name].insert(form_of(node)).second)
          continue;
        seeds.push_back({path.string(), model, i});
      }
    }
  return seeds;
}

using AttributeType = onnx::AttributeProto::AttributeType;

// Operators that no seed has get one each of their own: as many operands as they need, of floats and of
// integers.
void add_missing_seeds(std::vector<Seed>& seeds) {
  struct Row {
    const char *domain, *name;
    int min_inputs;
  };
  static const Row rows[] = {
#define QUERNEL_ONNX(domain, name, since, until, min_inputs, max_inputs, function) \
  {domain, #name, min_inputs},
#include "frontends/onnx/operators.def"
  };
  std::set<std::string> seen;
  for (const Seed& seed : seeds) seen.insert(operator_of(seed.model.graph().node(seed.node)));
  for (const Row& row : rows)
    for (int type : {kFloat, kInt64}) {
      ModelBuilder m(25);
      std::vector<std::string> operands;
      for (int i = 0; i < std::max(row.min_inputs, 1); ++i) {
        operands.push_back("x" + std::to_string(i));
        m.input(operands.back(), {2, 3}, type);
      }
      m.output("y");
      onnx::NodeProto& node = m.node(row.name, operands, {"y"});
      node.set_domain(row.domain);
      if (*row.domain) {
        auto* import = m.model.add_opset_import();
        import->set_domain(row.domain);
        import->set_version(1);
      }
      if (!seen.count(operator_of(node))) seeds.push_back({"made", m.model, 0});
    }
}

// All attribute names that seeds of an operator have.
std::map<std::string, std::set<std::string>> attribute_names(const std::vector<Seed>& seeds) {
  std::map<std::string, std::set<std::string>> names;
  for (const Seed& seed : seeds)
    for (const auto& a : seed.model.graph().node(seed.node).attribute())
      names[operator_of(seed.model.graph().node(seed.node))].insert(a.name());
  return names;
}

class Mutants {
 public:
  Mutants(const Seed& seed, const std::set<std::string>& names,
          std::function<void(const onnx::ModelProto&, const std::string&)> visit)
      : seed_(seed), names_(names), visit_(std::move(visit)) {}

  void run() {
    for (int i = 0; i < node().attribute_size(); ++i) attribute(i);
    for (const std::string& name : names_) {
      bool present = false;
      for (const auto& a : node().attribute()) present = present || a.name() == name;
      if (!present) added_attribute(name);
    }
    for (int i = 0; i < node().input_size(); ++i) operand(i);
    operands_and_outputs();
    for (int64_t opset : {1, 7, 9, 11, 13, 18, 21, 25, 28})
      emit("opset " + std::to_string(opset), [&](onnx::ModelProto& model) {
        for (auto& import : *model.mutable_opset_import())
          if (import.domain().empty() || import.domain() == "ai.onnx") import.set_version(opset);
      });
  }

 private:
  const onnx::NodeProto& node() const { return seed_.model.graph().node(seed_.node); }
  onnx::NodeProto& node_of(onnx::ModelProto& model) const {
    return *model.mutable_graph()->mutable_node(seed_.node);
  }

  void emit(const std::string& what, const std::function<void(onnx::ModelProto&)>& change) {
    onnx::ModelProto model = seed_.model;
    change(model);
    visit_(model, what);
  }

  static void set_type(onnx::AttributeProto& a, AttributeType type) {
    std::string name = a.name();
    a.Clear();
    a.set_name(name);
    a.set_type(type);
    switch (type) {
      case onnx::AttributeProto::INT:
        a.set_i(1);
        break;
      case onnx::AttributeProto::FLOAT:
        a.set_f(1);
        break;
      case onnx::AttributeProto::STRING:
        a.set_s("text");
        break;
      case onnx::AttributeProto::INTS:
        a.add_ints(1);
        break;
      case onnx::AttributeProto::FLOATS:
        a.add_floats(1);
        break;
      case onnx::AttributeProto::STRINGS:
        a.add_strings("text");
        break;
      case onnx::AttributeProto::TENSOR:
        a.mutable_t()->set_data_type(kFloat);
        a.mutable_t()->add_float_data(1);
        break;
      default:
        a.mutable_g()->set_name("empty");
    }
  }

  static constexpr AttributeType kTypes[] = {onnx::AttributeProto::INT,    onnx::AttributeProto::FLOAT,
                                             onnx::AttributeProto::STRING, onnx::AttributeProto::INTS,
                                             onnx::AttributeProto::FLOATS, onnx::AttributeProto::STRINGS,
                                             onnx::AttributeProto::TENSOR, onnx::AttributeProto::GRAPH};

  void attribute(int i) {
    std::string what = "attribute " + node().attribute(i).name();
    emit(what + " absent", [&](auto& m) { node_of(m).mutable_attribute()->DeleteSubrange(i, 1); });
    for (AttributeType type : kTypes)
      if (type != node().attribute(i).type())
        emit(what + " of type " + std::to_string(type),
             [&](auto& m) { set_type(*node_of(m).mutable_attribute(i), type); });
    for (int64_t value : kExtremes) {
      std::string is = what + " = " + std::to_string(value);
      const onnx::AttributeProto& a = node().attribute(i);
      if (a.type() == onnx::AttributeProto::INT)
        emit(is, [&](auto& m) { node_of(m).mutable_attribute(i)->set_i(value); });
      for (int k = 0; k < std::min(a.ints_size(), 4); ++k)
        emit(is + " at " + std::to_string(k),
             [&](auto& m) { node_of(m).mutable_attribute(i)->set_ints(k, value); });
      if (a.type() == onnx::AttributeProto::INTS)
        emit(is + " more", [&](auto& m) { node_of(m).mutable_attribute(i)->add_ints(value); });
    }
    emit(what + " empty", [&](auto& m) {
      onnx::AttributeProto& a = *node_of(m).mutable_attribute(i);
      a.clear_ints(), a.clear_floats(), a.clear_strings(), a.clear_s(), a.clear_t(), a.clear_g();
    });
    for (float value : {0.0f, -1.0f, 1e30f, NAN, INFINITY})
      if (node().attribute(i).type() == onnx::AttributeProto::FLOAT)
        emit(what + " = " + std::to_string(value),
             [&](auto& m) { node_of(m).mutable_attribute(i)->set_f(value); });
  }

  void added_attribute(const std::string& name) {
    for (AttributeType type : kTypes)
      emit("attribute " + name + " added of type " + std::to_string(type), [&](auto& m) {
        onnx::AttributeProto& a = *node_of(m).add_attribute();
        a.set_name(name);
        set_type(a, type);
      });
  }

  void operand(int i) {
    std::string name = node().input(i), what = "operand " + std::to_string(i);
    if (name.empty()) return;
    emit(what + " absent", [&](auto& m) { node_of(m).set_input(i, ""); });
    for (int k = 0; k < node().input_size(); ++k)
      if (k != i)
        emit(what + " is operand " + std::to_string(k),
             [&](auto& m) { node_of(m).set_input(i, node().input(k)); });
    // In place of the operand a computed one: of any rank, dtype, and with free dims.
    for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
             {}, {1}, {0}, {3}, {2, 3}, {-1}, {-1, 4}, {1, 2, 3, 4}, {2, 2, 2, 2, 2, 2}, {int64_t{1} << 39}})
      for (int type : {kFloat, kInt64, kBool}) computed(i, dims, type);
    for (int type : {2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 14, 16, 17, 19, 21, 22, 99}) like(i, type);
    resized(i);
  }

  void computed(int i, const std::vector<int64_t>& dims, int type) {
    std::string what = "operand " + std::to_string(i) + " an input of type " + std::to_string(type) +
                       " and rank " + std::to_string(dims.size());
    emit(what, [&](onnx::ModelProto& m) {
      ModelBuilder::describe(*m.mutable_graph()->add_input(), "mutant", dims, type);
      node_of(m).set_input(i, "mutant");
    });
  }

  // The operand as a graph input of its own shape and another dtype.
  void like(int i, int type) {
    for (const auto& info : seed_.model.graph().input())
      if (info.name() == node().input(i))
        emit("operand " + std::to_string(i) + " of type " + std::to_string(type), [&](onnx::ModelProto& m) {
          onnx::ValueInfoProto& other = *m.mutable_graph()->add_input();
          other = info;
          other.set_name("mutant");
          other.mutable_type()->mutable_tensor_type()->set_elem_type(type);
          node_of(m).set_input(i, "mutant");
        });
    for (const auto& tensor : seed_.model.graph().initializer())
      if (tensor.name() == node().input(i))
        emit("operand " + std::to_string(i) + " a constant of type " + std::to_string(type),
             [&](onnx::ModelProto& m) {
               onnx::TensorProto& other = *m.mutable_graph()->add_initializer();
               other = tensor;
               other.set_name("mutant");
               other.set_data_type(type);
               node_of(m).set_input(i, "mutant");
             });
  }

  // The operand with one dim more, fewer, or of another size.
  void resized(int i) {
    for (const auto& info : seed_.model.graph().input()) {
      if (info.name() != node().input(i)) continue;
      int rank = info.type().tensor_type().shape().dim_size();
      auto changed = [&](const std::string& how, const std::function<void(onnx::TensorShapeProto&)>& change) {
        emit("operand " + std::to_string(i) + " " + how, [&](onnx::ModelProto& m) {
          for (auto& input : *m.mutable_graph()->mutable_input())
            if (input.name() == info.name())
              change(*input.mutable_type()->mutable_tensor_type()->mutable_shape());
        });
      };
      changed("of one more dim", [](auto& s) { s.add_dim()->set_dim_value(2); });
      for (int d = 0; d < rank; ++d) {
        changed("without dim " + std::to_string(d), [&](auto& s) { s.mutable_dim()->DeleteSubrange(d, 1); });
        changed("of free dim " + std::to_string(d),
                [&](auto& s) { s.mutable_dim(d)->set_dim_param("free"); });
        for (int64_t size : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{1} << 33})
          changed("of dim " + std::to_string(d) + " " + std::to_string(size),
                  [&](auto& s) { s.mutable_dim(d)->set_dim_value(size); });
      }
    }
    for (int t = 0; t < seed_.model.graph().initializer_size(); ++t) {
      const onnx::TensorProto& tensor = seed_.model.graph().initializer(t);
      if (tensor.name() != node().input(i)) continue;
      auto changed = [&](const std::string& how, const std::function<void(onnx::TensorProto&)>& change) {
        emit("operand " + std::to_string(i) + " a constant " + how,
             [&](onnx::ModelProto& m) { change(*m.mutable_graph()->mutable_initializer(t)); });
      };
      changed("of rank 0", [](auto& c) { c.clear_dims(); });
      changed("of one more dim", [](auto& c) { c.add_dims(1); });
      for (int64_t value : kExtremes) {
        changed("with element " + std::to_string(value), [&](auto& c) {
          if (c.int64_data_size()) c.set_int64_data(0, value);
          if (c.int32_data_size()) c.set_int32_data(0, static_cast<int>(value));
          if (c.float_data_size()) c.set_float_data(0, static_cast<float>(value));
          if (c.raw_data().size() >= sizeof value)
            std::memcpy(c.mutable_raw_data()->data(), &value, sizeof value);
        });
      }
    }
  }

  void operands_and_outputs() {
    for (int count = 0; count < node().input_size(); ++count)
      emit(std::to_string(count) + " operands",
           [&](auto& m) { node_of(m).mutable_input()->DeleteSubrange(count, node().input_size() - count); });
    emit("one operand more",
         [&](auto& m) { node_of(m).add_input(node().input_size() ? node().input(0) : ""); });
    emit("an empty operand more", [&](auto& m) { node_of(m).add_input(""); });
    emit("one output more", [&](auto& m) {
      node_of(m).add_output("mutant_output");
      m.mutable_graph()->add_output()->set_name("mutant_output");
    });
    emit("three outputs more", [&](auto& m) {
      for (const char* name : {"mutant_a", "mutant_b", "mutant_c"}) node_of(m).add_output(name);
    });
    for (int o = 0; o < node().output_size(); ++o)
      emit("output " + std::to_string(o) + " unnamed", [&](auto& m) { node_of(m).set_output(o, ""); });
    emit("no outputs", [&](auto& m) { node_of(m).clear_output(); });
  }

  const Seed& seed_;
  const std::set<std::string>& names_;
  std::function<void(const onnx::ModelProto&, const std::string&)> visit_;
};

struct Counts {
  uint64_t mutants = 0, imported = 0, wrong = 0;
};

char g_current[512];  // the mutant that is being imported

void on_crash(int signal) {
  const char* how = signal == SIGPROF ? "HANG  " : "CRASH ";
  (void)!write(1, how, 6);
  (void)!write(1, g_current, strlen(g_current));
  (void)!write(1, "\n", 1);
  _exit(2);
}

Counts mutate(const Seed& seed, const std::set<std::string>& names) {
  Counts counts;
  std::string op = operator_of(seed.model.graph().node(seed.node));
  Mutants(seed, names, [&](const onnx::ModelProto& model, const std::string& what) {
    std::snprintf(g_current, sizeof g_current, "%s (%s): %s", op.c_str(), seed.file.c_str(), what.c_str());
    end_after(kSecondsPerModel);
    std::string bytes = model.SerializeAsString();
    Expected<ImportedModel> imported =
        import_onnx_bytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "mutant.onnx");
    ++counts.mutants;
    if (imported) {
      Status status = verify(imported->graph);
      counts.imported += static_cast<bool>(status);
      if (!status && ++counts.wrong)
        std::printf("WRONG %s: %s\n", g_current, to_string(status.errors()).c_str());
      return;
    }
    for (const Diagnostic& d : imported.errors())
      if (d.kind == DiagnosticKind::kInternal && ++counts.wrong)
        std::printf("WRONG %s: %s\n", g_current, to_string(d).c_str());
  }).run();
  end_after(0);
  return counts;
}

// In a process of its own; nullopt after a crash, which has been printed.
std::optional<Counts> mutate_apart(const Seed& seed, const std::set<std::string>& names) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGPROF}) std::signal(signal, on_crash);
    Counts counts = mutate(seed, names);
    std::fflush(stdout);
    (void)!write(ends[1], &counts, sizeof counts);
    _exit(0);
  }
  close(ends[1]);
  Counts counts;
  bool whole = read(ends[0], &counts, sizeof counts) == static_cast<ssize_t>(sizeof counts);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!whole) {
    std::printf("the mutants of %s (%s) ended early\n",
                operator_of(seed.model.graph().node(seed.node)).c_str(), seed.file.c_str());
    return std::nullopt;
  }
  return counts;
}

}  // namespace

int main(int argc, char** argv) {
  size_t most = 3, first = 0, count = SIZE_MAX;
  std::string only;
  std::vector<fs::path> folders;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seeds-per-operator") == 0 && i + 1 < argc)
      most = std::strtoul(argv[++i], nullptr, 10);
    else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc)
      only = argv[++i];
    else if (std::strcmp(argv[i], "--first") == 0 && i + 1 < argc)
      first = std::strtoul(argv[++i], nullptr, 10);
    else if (std::strcmp(argv[i], "--count") == 0 && i + 1 < argc)
      count = std::strtoul(argv[++i], nullptr, 10);
    else
      folders.push_back(argv[i]);
  }
  std::vector<Seed> seeds = choose_seeds(folders, most, only);
  if (only.empty()) add_missing_seeds(seeds);
  std::map<std::string, std::set<std::string>> names = attribute_names(seeds);
  std::set<std::string> missing = table_operators();
  Counts total;
  uint64_t crashes = 0;
  for (size_t i = 0; i < seeds.size(); ++i) {
    const Seed& seed = seeds[i];
    std::string op = operator_of(seed.model.graph().node(seed.node));
    missing.erase(op);
    if (i < first || i - first >= count) continue;
    std::optional<Counts> counts = mutate_apart(seed, names[op]);
    crashes += !counts;
    total.mutants += counts ? counts->mutants : 0;
    total.imported += counts ? counts->imported : 0;
    total.wrong += counts ? counts->wrong : 0;
  }
  if (!only.empty()) missing.clear();
  for (const std::string& op : missing)
    std::printf("no model with operator %s among the seeds\n", op.c_str());
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  std::printf(
      "%zu seeds\n%9llu mutants\n%9llu imported\n%9llu wrong\n%9llu crashes, after which a seed's other "
      "mutants are not tried\n%9ld MB at most\n",
      seeds.size(), static_cast<unsigned long long>(total.mutants),
      static_cast<unsigned long long>(total.imported), static_cast<unsigned long long>(total.wrong),
      static_cast<unsigned long long>(crashes), usage.ru_maxrss / 1024);
  return total.wrong || crashes || !missing.empty() || seeds.empty();
}
