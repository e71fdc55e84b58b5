// Golden texts of generated code: tests/golden/codegen. A case has one input and a section for every text that
// it becomes, `# FORM TARGET`: `llvm`, `c` and `glsl` of a kernel that has been through loop/passes, `program` of
// a graph (the run function in C, without kernels), `header` of a graph (behind the sizes). For headers `# scales`
// says what integers stand for, a line each: input|output NAME SCALE ZERO_POINT; `round even|away|even_product`.
// QUERNEL_UPDATE_GOLDEN=1 rewrites the texts; an empty section is enough to add one.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "codegen/c/prelude.h"
#include "codegen/c/print_kernels.h"
#include "codegen/llvm/check_kernel.h"
#include "codegen/llvm/object_code.h"
#include "codegen/spirv/glsl_prelude.h"
#include "codegen/spirv/shader_printer.h"
#include "graph/text.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "pipeline/pipeline.h"
#include "support/file.h"
#include "support/temporary_directory.h"
#include "test_case_file.h"

namespace quernel {
namespace {

// What every text of the language begins with is not in the golden texts.
std::string without_head(const std::string& text, std::string_view head) {
  EXPECT_TRUE(text.starts_with(head)) << text;
  return text.substr(head.size());
}

Expected<std::string> llvm_text(const loop::Kernel& kernel, const Target& target) {
  codegen::CrashGuard crash_guard;
  QUERNEL_TRY(codegen::Compiler compiler, codegen::Compiler::create(target, true, codegen::CodeUse::kImage));
  return compiler.emit_text(kernel);
}

Expected<std::string> c_text(const loop::Kernel& kernel, const Target& target) {
  codegen::CFunction function{kernel.name, "", std::vector<bool>(kernel.buffers.size(), true)};
  QUERNEL_TRY(codegen::CKernels printed, codegen::print_kernels({kernel}, target, {function}));
  std::string text = without_head(printed.prelude, codegen::c_requirements()) + printed.kernels[0].text;
  return without_head(text, codegen::c_prelude_for(text));
}

Expected<std::string> glsl_text(const loop::Kernel& kernel, const Target& target) {
  QUERNEL_TRY(codegen::Shader shader, codegen::print_shader(kernel, target));
  return without_head(shader.text, codegen::kGlslHead);
}

Expected<std::string> kernel_text(const std::string& form, const std::string& input, const Target& target,
                                  const std::string& file) {
  QUERNEL_TRY(loop::Kernel kernel, loop::parse_kernel(input, file));
  QUERNEL_CHECK(loop::verify(kernel));
  EXPECT_EQ(loop::to_string(kernel), input) << "the input is not in printed form";
  QUERNEL_CHECK(codegen::check_kernel(kernel, &target));
  if (form == "llvm") return llvm_text(kernel, target);
  if (form == "c") return c_text(kernel, target);
  if (form == "glsl") return glsl_text(kernel, target);
  return invalid_input("expected llvm, c, glsl, program or header, found '" + form + "'");
}

// What golden texts say of a model.
ModelFacts facts_of(const std::string& scales) {
  ModelFacts facts;
  IoScales& to = facts.scales.emplace_back();
  std::istringstream lines(scales);
  for (std::string kind, name; lines >> kind >> name;) {
    if (kind == "round") {
      to.rounding = name == "even"   ? ScaleRounding::kEven
                    : name == "away" ? ScaleRounding::kAway
                                     : ScaleRounding::kEvenProduct;
      continue;
    }
    IntegerScale scale;
    EXPECT_TRUE((kind == "input" || kind == "output") && lines >> scale.scale >> scale.zero_point) << scales;
    (kind == "input" ? to.inputs : to.outputs).emplace(name, scale);
  }
  return facts;
}

// Of the files that a graph becomes, one from a text in it on.
Expected<std::string> graph_text(const TestCase& test, const Target& target, const std::string& suffix,
                                 const std::string& from) {
  QUERNEL_TRY(Graph graph, parse_graph(test.sections.at("input"), test.file));
  TemporaryDirectory directory;
  CompileOptions options;
  options.emit = Emit::kC;
  options.targets = {target.name};
  auto scales = test.sections.find("scales");
  ModelFacts facts = scales == test.sections.end() ? ModelFacts{} : facts_of(scales->second);
  QUERNEL_CHECK(compile_graphs({graph}, directory.path() + "/model", options, facts));
  std::ifstream stream(directory.path() + "/model" + suffix);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  return text.substr(std::min(text.find(from), text.size()));
}

std::string text_of(const std::string& section, const TestCase& test, const std::string& file) {
  size_t space = section.find(' ');
  std::string form = section.substr(0, space);
  Expected<Target> target = find_target(space == std::string::npos ? "" : section.substr(space + 1));
  if (!target) return to_string(target.errors());
  Expected<std::string> text = form == "program" ? graph_text(test, *target, ".c", "int32_t model_run(")
                               : form == "header"
                                   ? graph_text(test, *target, ".h", "extern const model_memory")
                                   : kernel_text(form, test.sections.at("input"), *target, file);
  return text ? *text : to_string(text.errors());
}

std::vector<std::string> golden_files() {
  std::vector<std::string> names;
  for (const TestCaseFile& file : read_test_folder(QUERNEL_CODEGEN_GOLDEN)) names.push_back(file.stem);
  return names;
}

class CodegenGolden : public testing::TestWithParam<std::string> {};

TEST_P(CodegenGolden, prints_as_expected) {
  TestCaseFile file = read_test_cases(std::string(QUERNEL_CODEGEN_GOLDEN) + "/" + GetParam() + ".test");
  for (TestCase& test : file.cases) {
    EXPECT_GT(test.sections.size(), 1U) << "no text is expected";
    for (auto& [section, expected] : test.sections) {
      if (section == "input" || section == "scales") continue;
      std::string text = text_of(section, test, file.path);
      if (!updating_golden()) {
        EXPECT_EQ(text, expected) << file.path << ", case " << test.name << ", " << section;
      }
      expected = text;
    }
  }
  if (updating_golden()) write_test_cases(file);
}
INSTANTIATE_TEST_SUITE_P(Files, CodegenGolden, testing::ValuesIn(golden_files()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace quernel
