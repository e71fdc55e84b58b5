#include "optimised_ir.h"

#include <gtest/gtest.h>

#include <iterator>
#include <regex>

#include "codegen/llvm/object_code.h"
#include "loop/parse.h"
#include "support/file.h"
#include "support/temporary_directory.h"
#include "targets/target.h"

namespace quernel {

std::string optimised(const std::string& text, const std::string& preset) {
  Expected<Target> target = find_target(preset);
  Expected<loop::Kernel> kernel = loop::parse_kernel(text, "test");
  TemporaryDirectory directory;
  EXPECT_TRUE(target && kernel);
  if (!target || !kernel) return {};
  Expected<codegen::Compiler> compiler = codegen::Compiler::create(*target, true, codegen::CodeUse::kStatic);
  EXPECT_TRUE(compiler);
  if (!compiler) return {};
  EXPECT_TRUE(compiler->compile(std::span(&*kernel, 1), {"f"}, directory.path()));
  std::string error;
  std::optional<std::string> ir = read_file(directory.path() + "/" + kernel->name + ".ll", &error);
  EXPECT_TRUE(ir) << error;
  return ir.value_or("");
}

size_t count(const std::string& text, const std::string& pattern) {
  std::regex expression(pattern);
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), expression), std::sregex_iterator()));
}

}  // namespace quernel
