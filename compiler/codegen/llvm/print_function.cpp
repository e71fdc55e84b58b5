#include "codegen/llvm/print_function.h"

#include <llvm/ADT/SmallString.h>

#include "codegen/llvm/function_printer.h"

namespace quernel::codegen {

const char* pass_of(TextLanguage language) {
  return language == TextLanguage::kC ? "codegen-c" : "codegen-spirv";
}

std::string type_of(const llvm::Type& type, TextLanguage language) {
  if (type.isHalfTy()) return "float16_t";
  if (type.isFloatTy()) return "float";
  if (type.isDoubleTy()) return "double";
  if (type.isStructTy()) {
    std::string name = "qnl";
    for (unsigned i = 0; i < type.getStructNumElements(); ++i)
      name += "_" + type_of(*type.getStructElementType(i), language);
    return name;
  }
  unsigned width = type.getIntegerBitWidth();
  if (language == TextLanguage::kC) return width == 1 ? "int" : "uint" + std::to_string(width) + "_t";
  return width == 1 ? "bool" : width == 64 ? "uint64_t" : "uint";
}

std::string unsigned_number(const llvm::APInt& value, TextLanguage language) {
  llvm::SmallString<24> digits;
  value.toString(digits, 10, false);
  std::string text(digits);
  bool is_long = value.getBitWidth() > 32;
  if (language == TextLanguage::kGlsl) return text + (is_long ? "ul" : "u");
  return is_long ? "UINT64_C(" + text + ")" : value.getBitWidth() <= 16 ? text : text + "u";
}

Expected<std::string> print_function(const llvm::Function& function, const std::string& name,
                                     const std::string& prefix, TextLanguage language) {
  return (language == TextLanguage::kC ? c_printer(function, prefix) : glsl_printer(function, prefix))
      ->run(name);
}

std::string print_struct(const llvm::Type& type, TextLanguage language) {
  bool is_c = language == TextLanguage::kC;
  std::string name = type_of(type, language), text = is_c ? "typedef struct {\n" : "struct " + name + " {\n";
  for (unsigned m = 0; m < type.getStructNumElements(); ++m)
    text += "  " + type_of(*type.getStructElementType(m), language) + " m" + std::to_string(m) + ";\n";
  return text + (is_c ? "} " + name + ";\n" : "};\n");
}

Expected<std::string> print_table(const llvm::GlobalVariable& table, const std::string& prefix,
                                  TextLanguage language) {
  auto* data = llvm::dyn_cast<llvm::ConstantDataSequential>(table.getInitializer());
  if (!data || !data->getElementType()->isIntegerTy())
    return internal_error("expected a table of integers, found '" + table.getName().str() + "'", {},
                          pass_of(language));
  std::string numbers;
  for (unsigned i = 0; i < data->getNumElements(); ++i)
    numbers += (i == 0       ? "\n    "
                : i % 4 == 0 ? ",\n    "
                             : ", ") +
               unsigned_number(data->getElementAsAPInt(i), language);
  std::string type = type_of(*data->getElementType(), language), name = prefix + table.getName().str();
  std::string extent = "[" + std::to_string(data->getNumElements()) + "]";
  if (language == TextLanguage::kC)
    return "static const " + type + " " + name + extent + " = {" + numbers + ",};\n";
  return "const " + type + extent + " " + name + " = " + type + extent + "(" + numbers + ");\n";
}

}  // namespace quernel::codegen
