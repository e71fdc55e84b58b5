// Kernels stay small, however large the model is: what one of them binds and says does not grow with the
// number of nodes, operands, inputs or outputs, as a code generator's time grows with its square.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "graph/text.h"
#include "loop/print.h"
#include "lower/lower_item.h"
#include "pipeline/pipeline.h"
#include "pipeline/run_passes.h"

namespace quernel {
namespace {

struct Largest {
  size_t bindings = 0, text_bytes = 0;
  size_t items = 0;  // in all
};

// Of the kernels, those of bodies included.
Largest largest_kernel(const schedule::Schedule& s, const Target& target) {
  Largest largest;
  for (const schedule::Item& item : s.items) {
    if (item.group < 0) continue;
    const schedule::Group& group = s.groups[static_cast<size_t>(item.group)];
    ++largest.items;
    if (group.kind == schedule::GroupKind::kControl) {
      for (const schedule::Schedule& body : group.bodies) {
        Largest inside = largest_kernel(body, target);
        largest.bindings = std::max(largest.bindings, inside.bindings);
        largest.text_bytes = std::max(largest.text_bytes, inside.text_bytes);
        largest.items += inside.items;
      }
      continue;
    }
    largest.bindings = std::max(largest.bindings, item.bindings.size());
    largest.text_bytes =
        std::max(largest.text_bytes, loop::to_string(lower::lower_item(s, item, target).kernel).size());
  }
  return largest;
}

std::string join(int n, const std::string& separator, const std::function<std::string(int)>& part) {
  std::string text;
  for (int i = 0; i < n; ++i) text += (i == 0 ? "" : separator) + part(i);
  return text;
}

std::string numbered(const char* prefix, int i) { return prefix + std::to_string(i); }

// "%x0: type, %x1: type, …"
std::string inputs(int n, const std::string& type) {
  return join(n, ", ", [&](int i) { return numbered("%x", i) + ": " + type; });
}
std::string operands(int n, const char* prefix = "%x") {
  return join(n, ", ", [&](int i) { return numbered(prefix, i); });
}
std::string lines(int n, const std::function<std::string(int)>& line) {
  return join(n, "", [&](int i) { return "  " + line(i) + "\n"; });
}

struct Kind {
  const char* name;
  std::string (*graph)(int n);
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

// A chain of one op over all inputs.
std::string chain(const char* op, int n) {
  return "graph @g(" + inputs(n, "f32[4]") + ") {\n  %y0 = neg %x0 : f32[4]\n" +
         lines(n - 1,
               [&](int i) {
                 return numbered("%y", i + 1) + " = " + op + " " + numbered("%y", i) + ", " +
                        numbered("%x", i + 1) + " : f32[4]";
               }) +
         "  return y = " + numbered("%y", n - 1) + "\n}";
}

const Kind kKinds[] = {
    {"cat_of_rows",
     [](int n) {
       return "graph @g(" + inputs(n, "f32[4]") + ") {\n  %y = cat " + operands(n) + " {0} : f32[" +
              std::to_string(4 * n) + "]\n  return y = %y\n}";
     }},
    {"cat_of_columns_of_free_size",
     [](int n) {
       return "symbol N min=0\ngraph @g(" + inputs(n, "f32[3,N]") + ") {\n  %y = cat " + operands(n) +
              " {1} : f32[3,(N * " + std::to_string(n) + ")]\n  return y = %y\n}";
     }},
    {"cat_of_one_operand",
     [](int n) {
       return "graph @g(%x: f32[4]) {\n  %y = cat " + join(n, ", ", [](int) { return "%x"; }) +
              " {0} : f32[" + std::to_string(4 * n) + "]\n  return y = %y\n}";
     }},
    {"cat_of_computed_values",
     [](int n) {
       return "graph @g(" + inputs(n, "f32[4]") + ") {\n" +
              lines(n,
                    [](int i) { return numbered("%r", i) + " = exp " + numbered("%x", i) + " : f32[4]"; }) +
              "  %c = cat " + operands(n, "%r") + " {0} : f32[" + std::to_string(4 * n) +
              "]\n  %y = neg %c : f32[" + std::to_string(4 * n) + "]\n  return y = %y\n}";
     }},
    {"cat_of_packed_values",
     [](int n) {
       return "graph @g(" + inputs(n, "i4[3]") + ") {\n  %y = cat " + operands(n) + " {0} : i4[" +
              std::to_string(3 * n) + "]\n  return y = %y\n}";
     }},
    {"sum", [](int n) { return chain("add", n); }},
    {"maximum", [](int n) { return chain("max", n); }},
    {"outputs",
     [](int n) {
       return "graph @g(" + inputs(n, "f32[4]") + ") {\n" +
              lines(n,
                    [](int i) { return numbered("%r", i) + " = exp " + numbered("%x", i) + " : f32[4]"; }) +
              "  return " +
              join(n, ", ", [](int i) { return numbered("r", i) + " = " + numbered("%r", i); }) + "\n}";
     }},
    {"selections",
     [](int n) {
       return "graph @g(%q: bool[4], " + inputs(n, "f32[4]") + ", " +
              join(n, ", ", [](int i) { return numbered("%c", i) + ": bool[4]"; }) +
              ") {\n  %y0 = neg %x0 : f32[4]\n" +
              lines(n - 1,
                    [](int i) {
                      return numbered("%y", i + 1) + " = where " + numbered("%c", i) + ", " +
                             numbered("%y", i) + ", " + numbered("%x", i + 1) + " : f32[4]";
                    }) +
              "  return y = " + numbered("%y", n - 1) + "\n}";
     }},
    {"partial_sums_that_are_outputs",
     [](int n) {
       return "graph @g(" + inputs(n, "f32[4]") + ") {\n  %y0 = neg %x0 : f32[4]\n" +
              lines(n - 1,
                    [](int i) {
                      return numbered("%y", i + 1) + " = add " + numbered("%y", i) + ", " +
                             numbered("%x", i + 1) + " : f32[4]";
                    }) +
              "  return " +
              join(n, ", ", [](int i) { return numbered("y", i) + " = " + numbered("%y", i); }) + "\n}";
     }},
    {"outputs_of_one_value",
     [](int n) {
       return "graph @g(%x: f32[4]) {\n" +
              lines(n,
                    [](int i) {
                      return numbered("%r", i) + " = " +
                             (i == 0 ? "exp %x" : "neg " + numbered("%r", i - 1)) + " : f32[4]";
                    }) +
              "  return " +
              join(n, ", ", [](int i) { return numbered("r", i) + " = " + numbered("%r", i); }) + "\n}";
     }},
    {"slices_of_one_value",
     [](int n) {
       return "graph @g(%x: f32[" + std::to_string(4 * n) + "]) {\n" +
              lines(n,
                    [](int i) {
                      return numbered("%r", i) + " = slice %x [" + std::to_string(4 * i) + ":" +
                             std::to_string(4 * i + 4) + "] : f32[4]";
                    }) +
              "  return " +
              join(n, ", ", [](int i) { return numbered("r", i) + " = " + numbered("%r", i); }) + "\n}";
     }},
    {"stages_over_rows",
     [](int n) {
       return "graph @g(%x: f32[4,32]) {\n  %y0 = neg %x : f32[4,32]\n" +
              lines(n,
                    [](int i) {
                      std::string m = numbered("%m", i), y = numbered("%y", i);
                      return m + " = reduce_max " + y + " {1} keepdims : f32[4,1]\n  " + numbered("%e", i) +
                             " = expand " + m + " : f32[4,32]\n  " + numbered("%y", i + 1) + " = sub " + y +
                             ", " + numbered("%e", i) + " : f32[4,32]";
                    }) +
              "  return y = " + numbered("%y", n) + "\n}";
     }},
    {"rows_of_many_values",
     [](int n) {
       return "graph @g(" + inputs(n, "f32[4,32]") + ") {\n  %y0 = neg %x0 : f32[4,32]\n" +
              lines(n,
                    [](int i) {
                      std::string x = numbered("%x", i), m = numbered("%m", i);
                      return m + " = reduce_max " + x + " {1} keepdims : f32[4,1]\n  " + numbered("%e", i) +
                             " = expand " + m + " : f32[4,32]\n  " + numbered("%d", i) + " = sub " + x +
                             ", " + numbered("%e", i) + " : f32[4,32]\n  " + numbered("%y", i + 1) +
                             " = add " + numbered("%y", i) + ", " + numbered("%d", i) + " : f32[4,32]";
                    }) +
              "  return y = " + numbered("%y", n) + "\n}";
     }},
    {"carried_values",
     [](int n) {
       return "symbol i min=0 max=3 runtime bound=3\ngraph @g(" + inputs(n, "f32[4]") + ") {\n  %l = loop " +
              operands(n) + " carry " + std::to_string(n) + " for i below 3 do (" +
              join(n, ", ", [](int i) { return numbered("%v", i) + ": f32[4]"; }) + ") {\n" +
              lines(n,
                    [](int i) {
                      return numbered("%w", i) + " = add " + numbered("%v", i) + ", " + numbered("%v", i) +
                             " : f32[4]";
                    }) +
              "    return " +
              join(n, ", ", [](int i) { return numbered("w", i) + " = " + numbered("%w", i); }) + "\n  }\n" +
              lines(n,
                    [](int i) {
                      return numbered("%r", i) + " = result %l {" + std::to_string(i) + "} : f32[4]";
                    }) +
              "  return " +
              join(n, ", ", [](int i) { return numbered("y", i) + " = " + numbered("%r", i); }) + "\n}";
     }},
};

class KernelSize : public testing::TestWithParam<Kind> {};

TEST_P(KernelSize, does_not_grow_with_the_model) {
  constexpr int kFew = 150, kMany = 600;
  for (const char* name : {"x86-64-v3", "vulkan"}) {
    Target target = *find_target(name);
    auto largest = [&](int n) {
      Expected<Graph> graph = parse_graph(GetParam().graph(n));
      if (graph) graph = run_graph_passes(std::move(*graph), target, CompileOptions());
      schedule::Packings packings;
      Expected<schedule::Schedule> s =
          graph ? make_schedule(std::move(*graph), target, packings) : graph.errors();
      if (s) return largest_kernel(*s, target);
      ADD_FAILURE() << to_string(s.errors());
      return Largest();
    };
    Largest few = largest(kFew), many = largest(kMany);
    // Of elementwise nodes, up to 48 with two operands and a result each, on a processor.
    EXPECT_LE(many.bindings, target.is_gpu() ? 64u : 145u) << name;
    EXPECT_LE(many.text_bytes, 2 * few.text_bytes) << name;
    EXPECT_LE(many.items, 4u * kMany) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, KernelSize, testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace quernel
