// C text compiled by the system's C compiler into a shared object and loaded.
#pragma once

#include <string>

namespace quernel::test {

class CompiledC {
 public:
  // Strict C99, all warnings are errors; what the compiler says then is a test failure, and the object empty.
  CompiledC(const std::string& text, const std::string& flags);
  CompiledC(const CompiledC&) = delete;
  ~CompiledC();
  bool ok() const { return library_ != nullptr; }
  template <class Function>
  Function* function(const std::string& name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const std::string& name) const;
  void* library_ = nullptr;
};

}  // namespace quernel::test
