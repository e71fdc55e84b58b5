#include "kit_script.h"

#include "kit_script_text.h"

namespace quernel::tools {
namespace {

// As one word of the shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

void replace(std::string& text, const std::string& what, const std::string& by) {
  text.replace(text.find(what), what.size(), by);
}

}  // namespace

std::string kit_script(const std::string& id, const std::string& architecture,
                       const std::vector<std::string>& arguments) {
  std::string words, text = kKitScript;
  for (const std::string& word : arguments) words += (words.empty() ? "" : " ") + quoted(word);
  replace(text, "QUERNEL_KIT_ID", id);
  replace(text, "QUERNEL_ARCHITECTURE", quoted(architecture));
  replace(text, "QUERNEL_ARGUMENTS", words);
  return text;
}

}  // namespace quernel::tools
