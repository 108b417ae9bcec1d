#include "src/checkpoint/manifest.hpp"

#include <xxhash.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gs {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr int kDeepest = 8;                    // what is nested deeper is not ours, and dump() would recurse into it
constexpr const char* kChecksum = "checksum";  // of the text without it

std::string hex(XXH64_hash_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string hash_of(std::string_view bytes) { return hex(XXH3_64bits(bytes.data(), bytes.size())); }

std::string with_checksum(Json json) {
  json[kChecksum] = hash_of(json.dump());
  return json.dump(2) + "\n";
}

Json json_of(const std::vector<FileSum>& files) {
  Json list = Json::array();
  for (const FileSum& file : files) list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.hash}});
  return list;
}

Json json_of(const std::vector<ShardEntry>& shards) {
  Json list = Json::array();
  for (const ShardEntry& shard : shards) list.push_back({{"name", shard.name}, {"rows", shard.rows}});
  return list;
}

/// A JSON file whose every value is looked at before it is used.
class Reader {
 public:
  explicit Reader(const fs::path& path) : path_(path) {
    json_ = Json::parse(
        read_text(path), [](int depth, auto, auto&) { return depth <= kDeepest; }, false);
    if (json_.is_discarded() || !json_.is_object()) fail("is no JSON object");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Fault::input, cat(path_.string(), ": ", what, "; the checkpoint cannot be used"));
  }

  /// After the format: a newer one may check itself in another way.
  void require_checksum() {
    const std::string claimed = text(json_, kChecksum);
    json_.erase(kChecksum);
    if (hash_of(json_.dump(-1, ' ', false, Json::error_handler_t::replace)) != claimed)
      fail("its contents do not match its checksum: it is damaged");
  }

  const Json& top() const { return json_; }

  const Json& member(const Json& parent, const char* name) const {
    const auto found = parent.is_object() ? parent.find(name) : parent.end();
    if (!parent.is_object() || found == parent.end()) fail(cat("has no \"", name, "\""));
    return *found;
  }
  std::string text(const Json& parent, const char* name) const {
    const Json& value = member(parent, name);
    if (!value.is_string()) fail(cat("\"", name, "\" is no text"));
    return value.get<std::string>();
  }
  Offset count(const Json& parent, const char* name) const {
    const Json& value = member(parent, name);
    if (!value.is_number_integer() || value.get<Offset>() < 0) fail(cat("\"", name, "\" is no count"));
    return value.get<Offset>();
  }
  bool flag(const Json& parent, const char* name) const {
    const Json& value = member(parent, name);
    if (!value.is_boolean()) fail(cat("\"", name, "\" is neither true nor false"));
    return value.get<bool>();
  }
  const Json& list(const char* name) const {
    const Json& value = member(json_, name);
    if (!value.is_array()) fail(cat("\"", name, "\" is no list"));
    return value;
  }
  /// Of a file beside this one: never a path.
  std::string plain_name(const Json& parent, const char* name) const {
    const std::string value = text(parent, name);
    const bool is_plain =
        !value.empty() && value[0] != '.' && value.find_first_of(std::string("/\\\0", 3)) == value.npos;
    if (!is_plain) fail(cat("\"", value, "\" is no plain file name"));
    return value;
  }

  std::vector<FileSum> files() const {
    std::vector<FileSum> files;
    for (const Json& file : list("files"))
      files.push_back({plain_name(file, "name"), text(file, "xxh3"), count(file, "bytes")});
    return files;
  }
  std::vector<ShardEntry> shards() const {
    std::vector<ShardEntry> shards;
    for (const Json& shard : list("shards")) shards.push_back({plain_name(shard, "name"), count(shard, "rows")});
    return shards;
  }
  std::vector<std::string> tables() const {
    std::vector<std::string> tables;
    for (const Json& table : list("tables")) {
      if (!table.is_string()) fail("\"tables\" is no list of names");
      tables.push_back(table.get<std::string>());
    }
    return tables;
  }

  template <class T>
  void number(const Json& parent, const char* name, T& value) const {
    if constexpr (std::is_floating_point_v<T>) {
      const Json& found = member(parent, name);
      if (!found.is_number()) fail(cat("\"", name, "\" is no number"));
      value = found.get<T>();
    } else {
      const Offset found = count(parent, name);
      if (found > Offset(std::numeric_limits<T>::max())) fail(cat("\"", name, "\" ", found, " is too large"));
      value = T(found);
    }
  }

 private:
  fs::path path_;
  Json json_;
};

}  // namespace

FileSum sum_of(const fs::path& file) {
  const MappedFile mapped(file);
  const Span<const char> bytes = mapped.bytes();
  return {file.filename().string(), hash_of({bytes.data, std::size_t(bytes.size)}), bytes.size};
}

std::string rows_file(const std::string& shard) { return shard + ".rows.npy"; }
std::string table_file(const std::string& shard, const std::string& table) { return cat(shard, ".", table, ".npy"); }

std::string to_text(const Manifest& manifest) {
  const RunState& state = manifest.state;
  Json totals;
  each_total(state.totals, [&](const char* name, const auto& value) { totals[name] = value; });
  return with_checksum({{"format", kFormat},
                        {"program", kVersion},
                        {"part", state.part},
                        {"steps", state.steps},
                        {"walks", state.walks},
                        {"part_validations", state.part_validations},
                        {"validations_without_better", state.validations_without_better},
                        {"complete", state.complete},
                        {"best", state.is_best},
                        {"graph",
                         {{"version", state.graph_version},
                          {"content_hash", state.graph_hash},
                          {"nodes", state.nodes},
                          {"dense_rows", state.dense_rows}}},
                        {"totals", totals},
                        {"tables", manifest.tables},
                        {"shards", json_of(manifest.shards)},
                        {"files", json_of(manifest.files)}});
}

std::string to_text(const ShardList& list) {
  return with_checksum({{"tables", list.tables}, {"shards", json_of(list.shards)}, {"files", json_of(list.files)}});
}

ShardList read_shard_list(const fs::path& path) {
  Reader reader(path);
  reader.require_checksum();
  return {reader.shards(), reader.tables(), reader.files()};
}

Manifest read_manifest(const fs::path& path) {
  Reader reader(path);
  if (const Offset format = reader.count(reader.top(), "format"); format > kFormat)
    reader.fail(cat("is of format ", format, ", this program (", kVersion, ") reads up to ", kFormat,
                    ": use a newer graphscale"));
  reader.require_checksum();
  Manifest manifest;
  RunState& state = manifest.state;
  const Json &top = reader.top(), &graph = reader.member(top, "graph"), &totals = reader.member(top, "totals");
  reader.number(top, "part", state.part);
  reader.number(top, "steps", state.steps), reader.number(top, "walks", state.walks);
  reader.number(top, "part_validations", state.part_validations);
  reader.number(top, "validations_without_better", state.validations_without_better);
  state.complete = reader.flag(top, "complete"), state.is_best = reader.flag(top, "best");
  state.graph_version = reader.text(graph, "version"), state.graph_hash = reader.text(graph, "content_hash");
  reader.number(graph, "nodes", state.nodes), reader.number(graph, "dense_rows", state.dense_rows);
  if (state.nodes > kMaxRows || state.dense_rows > kMaxRows || state.rows() > kMaxRows)
    reader.fail(cat("says ", state.nodes, " nodes and ", state.dense_rows, " relations; at most ", kMaxRows,
                    " rows are expected"));
  each_total(state.totals, [&](const char* name, auto& value) { reader.number(totals, name, value); });
  manifest.tables = reader.tables();
  manifest.shards = reader.shards(), manifest.files = reader.files();
  return manifest;
}

}  // namespace gs
