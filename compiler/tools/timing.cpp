#include "timing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/bundle.h"
#include "support/file.h"
#include "tensor_file.h"

namespace quernel::tools {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Diagnostic runtime_error(const qnl_error& error) {
  std::string text = fmt::format("{}: {}", qnl_status_text(error.status), error.text);
  return error.status == QNL_CUSTOM_OP_MISSING
             ? unsupported(text, {},
                           "only an application has its functions; a kernel in the description needs none")
             : invalid_input(text);
}

bool is_bundle(const std::string& path) {
  char magic[4] = {};
  std::string reason;
  int file = open_regular_file(path, &reason);
  if (file < 0) return false;
  ssize_t got = ::read(file, magic, sizeof magic);
  ::close(file);
  return got == sizeof magic && std::memcmp(magic, "QNL1", sizeof magic) == 0;
}

Expected<uint32_t> find_entry(const Bundle& bundle, const std::string& name) {
  std::string legal;
  qnl_entry_info info;
  for (uint32_t i = 0; qnl_bundle_get_entry(bundle.get(), i, &info) == QNL_OK; ++i) {
    if (name.empty() || name == info.name) return i;
    legal += (legal.empty() ? "'" : ", '") + std::string(info.name) + "'";
  }
  return invalid_input("--entry: expected one of " + legal + ", found '" + name + "'");
}

namespace {

// The bundle's symbols: as given, else the smallest, but for 0.
Status set_symbols(const Bundle& bundle, Session& session, const std::vector<std::string>& given) {
  qnl_error error;
  auto set = [&](const char* name, int64_t value) {
    return qnl_session_set_symbol(session.get(), name, value, &error) == QNL_OK ? Status()
                                                                                : runtime_error(error);
  };
  qnl_symbol_info symbol;
  for (uint32_t i = 0; qnl_bundle_get_symbol(bundle.get(), i, &symbol) == QNL_OK; ++i)
    if (!symbol.runtime)
      QUERNEL_CHECK(set(symbol.name, std::min(std::max(symbol.min, symbol.multiple_of), symbol.max)));
  for (const std::string& text : given) {
    size_t at = text.rfind('=');
    const char* end = text.data() + text.size();
    int64_t value = 0;
    if (at == std::string::npos || at == 0 || std::from_chars(text.data() + at + 1, end, value).ptr != end)
      return invalid_input("--symbol: expected NAME=NUMBER, found '" + text + "'");
    QUERNEL_CHECK(set(text.substr(0, at).c_str(), value));
  }
  return {};
}

// Seeded values in every input.
Status fill_inputs(const Bundle& bundle, uint32_t entry, Session& session) {
  qnl_tensor signature;
  qnl_error error;
  for (uint32_t i = 0; qnl_bundle_get_tensor(bundle.get(), entry, QNL_INPUT, i, &signature) == QNL_OK; ++i) {
    if (session.tensor(QNL_INPUT, signature.name, &signature, &error) != QNL_OK) return runtime_error(error);
    tensor_file::HostTensor host;
    host.dtype = signature.dtype;
    host.shape.assign(signature.shape, signature.shape + signature.rank);
    tensor_file::fill_random(i, &host);
    signature.bytes = host.bytes.size();
    signature.data = host.bytes.data();
    if (session.set_input(signature, &error) != QNL_OK) return runtime_error(error);
  }
  return {};
}

}  // namespace

Expected<std::unique_ptr<ReadyBundle>> make_ready(const std::string& path, const Device& device,
                                                  const std::string& entry,
                                                  const std::vector<std::string>& symbols) {
  auto ready = std::make_unique<ReadyBundle>();
  qnl_error error;
  qnl_session_options options = {};
  if (!entry.empty()) options.entry_point = entry.c_str();
  if (ready->bundle.open(path.c_str(), nullptr, &error) != QNL_OK) return runtime_error(error);
  QUERNEL_TRY(ready->entry, find_entry(ready->bundle, entry));
  if (qnl_session_query(ready->bundle.get(), device.get(), &options, &ready->memory, &error) != QNL_OK ||
      ready->session.create(ready->bundle, device, &options, &error) != QNL_OK)
    return runtime_error(error);
  QUERNEL_CHECK(set_symbols(ready->bundle, ready->session, symbols));
  QUERNEL_CHECK(fill_inputs(ready->bundle, ready->entry, ready->session));
  return ready;
}

std::vector<ItemText> item_texts(const ReadyBundle& ready) {
  const runtime::BundleReader& reader = ready.bundle.get()->reader;
  uint32_t variant = ready.memory.variant;
  std::vector<ItemText> texts;
  for (uint32_t i = 0; i < reader.item_count(reader.plan(ready.entry, variant)); ++i) {
    runtime::ItemView item = reader.item(reader.plan(ready.entry, variant), i);
    ItemText& text = texts.emplace_back(ItemText{item.kernel_class, item.key, item.choice});
    for (uint32_t b = 0; b < item.binding_count; ++b) {
      runtime::BindingView binding = reader.binding(reader.plan(ready.entry, variant), i, b);
      if (reader.arena(binding.arena).kind == runtime::ArenaKind::kConstants)
        text.weight_bytes += binding.bytes;
    }
  }
  return texts;
}

std::vector<ItemAbout> items_of(const Bundle& bundle, uint32_t entry) {
  const runtime::BundleReader& reader = bundle.get()->reader;
  std::vector<ItemAbout> items;
  for (uint32_t i = 0; i < reader.item_count(reader.plan(entry, 0)); ++i) {
    const runtime::ItemView item = reader.item(reader.plan(entry, 0), i);
    items.push_back({item.source_node, item.workgroups, {item.kernel_class, item.key, item.choice}});
  }
  return items;
}

Expected<std::vector<double>> time_items(Session& session) {
  std::vector<double> seconds(qnl_session_item_count(session.get()), 0);
  auto hook = [](void* user, uint32_t item, uint64_t nanoseconds) {
    (*static_cast<std::vector<double>*>(user))[item] += static_cast<double>(nanoseconds) * 1e-9;
  };
  qnl_session_set_profile(session.get(), hook, &seconds);
  qnl_error error;
  qnl_status status = session.run(&error);
  qnl_session_set_profile(session.get(), nullptr, nullptr);
  if (status != QNL_OK) return runtime_error(error);
  return seconds;
}

}  // namespace quernel::tools
