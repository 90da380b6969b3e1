// NetworkCatalog, see network_catalog.h.
#include "predictor/daemon/network_catalog.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace lbf::daemon {

namespace {

namespace fs = std::filesystem;

using Networks = std::map<std::string, std::shared_ptr<const engine::Network>>;

// Adds what `directory` has, if it is there, to `networks` by name. `default_network`: the one in
// default.toml.
Result<void> load_files(const std::string& directory, Networks& networks,
                        std::shared_ptr<const engine::Network>& default_network) {
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::exists(directory, error)) {
    for (const auto& entry : fs::directory_iterator(directory, error)) {
      if (entry.path().extension() == ".toml") files.push_back(entry.path());
    }
  }
  if (error) {
    return Error{ErrorCode::kIo, "cannot list networks_dir " + directory + ": " + error.message() +
                                     ": make it readable for lbfd, or set networks_dir"};
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    auto network = engine::Network::load(file.string());
    if (!network) return network.error();
    auto shared = std::make_shared<const engine::Network>(std::move(network).value());
    const std::string name = shared->name();
    if (!networks.emplace(name, shared).second) {
      return invalid_input(file.string() + ": name '" + name + "' is taken by another file in " + directory +
                           ": give each network a name of its own");
    }
    if (file.filename() == "default.toml") default_network = shared;
  }
  return {};
}

}  // namespace

Result<NetworkCatalog> NetworkCatalog::load(const std::string& directory, const std::string& own) {
  NetworkCatalog catalog;
  catalog.zero_ = std::make_shared<const engine::Network>(engine::Network::zero());
  std::shared_ptr<const engine::Network> from_default_file;
  std::shared_ptr<const engine::Network> ignored;
  if (auto loaded = load_files(directory, catalog.networks_, from_default_file); !loaded) return loaded.error();
  if (auto loaded = load_files(directory + "/nominal", catalog.nominal_, ignored); !loaded) return loaded.error();

  if (!own.empty()) {
    catalog.own_ = catalog.find(own);
    if (catalog.own_ == nullptr) {
      return invalid_input("network = \"" + own + "\": no file in " + directory +
                           " has that name: put it there (lbf-calibrate measures one), or remove the key");
    }
  } else if (from_default_file != nullptr) {
    catalog.own_ = from_default_file;
  } else if (auto named = catalog.find("default"); named != nullptr) {
    catalog.own_ = named;
  } else if (catalog.networks_.size() == 1) {
    catalog.own_ = catalog.networks_.begin()->second;
  } else {
    catalog.own_ = catalog.zero_;
    catalog.own_note_ = catalog.networks_.empty()
                            ? "no network is described in networks_dir: messages take no time (network zero), so that "
                              "times on several nodes are bounds; lbf-calibrate measures the network"
                            : "lbfd.toml does not say which network this cluster has (key network): the run is "
                              "replayed as if messages took no time (network zero)";
  }
  return catalog;
}

std::shared_ptr<const engine::Network> NetworkCatalog::find(const std::string& name) const {
  for (const Networks* networks : {&networks_, &nominal_}) {
    if (const auto found = networks->find(name); found != networks->end()) return found->second;
  }
  return name == kNoNetwork ? zero_ : nullptr;
}

std::vector<std::string> NetworkCatalog::names() const {
  std::vector<std::string> out;
  for (const Networks* networks : {&networks_, &nominal_}) {
    for (const auto& [name, network] : *networks) {
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
  }
  if (std::find(out.begin(), out.end(), kNoNetwork) == out.end()) out.emplace(out.begin(), kNoNetwork);
  return out;
}

NetworkCatalog::Selection NetworkCatalog::select(const std::vector<std::string>& wanted) const {
  Selection selection;
  const auto add = [&selection](const std::shared_ptr<const engine::Network>& network) {
    if (std::find(selection.networks.begin(), selection.networks.end(), network) == selection.networks.end()) {
      selection.networks.push_back(network);
    }
  };
  for (const std::string& name : wanted) {
    if (auto found = find(name); found != nullptr) {
      add(found);
    } else {
      std::string known;
      for (const std::string& one : names()) known += (known.empty() ? "" : ", ") + one;
      selection.notes.push_back("network '" + name.substr(0, 80) + "' is not known here: there are " + known);
    }
  }
  if (selection.networks.empty()) {
    add(own_);
    for (const auto& [name, network] : networks_) add(network);
    if (networks_.empty() && own_ == zero_) {
      for (const std::string_view name : kStandIns) {
        if (const auto found = find(std::string(name)); found != nullptr) add(found);
      }
    }
  }
  return selection;
}

}  // namespace lbf::daemon
