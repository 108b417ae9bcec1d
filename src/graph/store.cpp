#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/graph/text_lines.hpp"

namespace gs {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1, kFormatOfTriples = 2;
constexpr int kDeepestMeta = 8;  // what is nested deeper is not ours, and dump() would recurse into it
constexpr const char* kCurrent = "CURRENT";
constexpr const char* kMeta = "meta.json";
constexpr const char *kOffsets = "offsets.npy", *kTargets = "targets.npy", *kWeights = "weights.npy",
                     *kNameNumbers = "name_numbers.npy", *kNameBytes = "name_bytes.npy",
                     *kNameBounds = "name_bounds.npy", *kRelations = "relations.npy",
                     *kRelationBytes = "relation_bytes.npy", *kRelationBounds = "relation_bounds.npy";
constexpr const char* kRemedy = "; roll back to another version or make the graph again";

template <class... Parts>
[[noreturn]] void fail(const fs::path& path, const Parts&... parts) {
  throw Error(Fault::input, cat(path.string(), ": ", parts...));
}

// ---------------------------------------------------------------------------------------------------- version names

std::string version_name(Offset number) {
  const std::string digits = std::to_string(number);
  return "v" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

/// The number of "v0012", or nullopt for any other text.
std::optional<Offset> version_number(const std::string& name) {
  constexpr Offset kMost = Offset{1} << 62;  // there is always a next one
  Offset number = 0;
  if (name.empty() || name[0] != 'v') return std::nullopt;
  std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return number > 0 && number < kMost && version_name(number) == name ? std::optional(number) : std::nullopt;
}

/// Numbers of the versions in the store, ascending.
std::vector<Offset> version_numbers(const fs::path& store) {
  std::vector<Offset> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(store, error), end; !error && entry != end; entry.increment(error))
    if (const auto number = version_number(entry->path().filename().string())) numbers.push_back(*number);
  if (error) fail(store, "cannot be listed: ", error.message());
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string version_list(const fs::path& store) {
  std::string list;
  for (const Offset number : version_numbers(store)) list += (list.empty() ? "" : ", ") + version_name(number);
  return list.empty() ? "none" : list;
}

/// What CURRENT says, or empty where there is none.
std::string current_name(const fs::path& store) {
  std::error_code error;
  if (!fs::exists(store / kCurrent, error)) return {};
  std::string name = read_text(store / kCurrent);
  while (!name.empty() && (name.back() == '\n' || name.back() == '\r')) name.pop_back();
  return name;
}

void require_store(const fs::path& store) {
  std::error_code error;
  if (!fs::exists(store, error)) fail(store, "there is no such graph store; make one with `graphscale graph ingest`");
  if (!fs::is_directory(store, error) || (!fs::exists(store / kCurrent, error) && version_numbers(store).empty()))
    fail(store, "is not a graph store: it has no ", kCurrent, " and no versions");
}

/// The version to use: `wanted`, or the current one where it is empty.
std::string known_version(const fs::path& store, const std::string& wanted) {
  require_store(store);
  const std::string name = wanted.empty() ? current_name(store) : wanted;
  std::error_code error;
  if (version_number(name) && fs::is_directory(store / name, error)) return name;
  if (wanted.empty() && name.empty())
    fail(store, "has no current version (", kCurrent, " is missing); choose one with `graphscale graph rollback`; ",
         "there are: ", version_list(store));
  if (wanted.empty())
    fail(store / kCurrent, "names ", gs::quoted(name), ", which is not in the store; there are: ", version_list(store));
  fail(store, "has no version '", name, "'; there are: ", version_list(store));
}

// --------------------------------------------------------------------------------------------------------- meta.json

struct Meta {
  VersionInfo info;
  std::map<std::string, Offset> array_bytes;  // of each array's file
};

std::string to_text(const Meta& meta) {
  const VersionInfo& info = meta.info;
  Json json{{"format", info.num_relations > 0 ? kFormatOfTriples : kFormat},
            {"id", info.id},
            {"created", info.created},
            {"parent", info.parent},
            {"source", info.source},
            {"directed", info.directed},
            {"weighted", info.weighted},
            {"num_nodes", info.num_nodes},
            {"num_arcs", info.num_arcs},
            {"content_hash", info.content_hash},
            {"statistics", Json::object()},
            {"array_bytes", Json::object()}};
  if (info.num_relations > 0) json["num_relations"] = info.num_relations;
  each_statistic(info.statistics, [&](const char* name, const auto& value) { json["statistics"][name] = value; });
  for (const auto& [name, bytes] : meta.array_bytes) json["array_bytes"][name] = bytes;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";  // a path need not be UTF-8
}

/// A whole number in [0, most]: one that is not, such as 1e300 or -1, would become another when it is converted.
Offset whole_number(const fs::path& path, const char* name, const Json& value,
                    Offset most = std::numeric_limits<Offset>::max()) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t(most))
    fail(path, name, " is ", value.dump(), "; a whole number from 0 to ", most, " is expected", kRemedy);
  return value.get<Offset>();
}

Meta read_meta(const fs::path& folder) {
  const fs::path path = folder / kMeta;
  const std::string text = read_text(path);
  const auto read = [&](const char* name, const Json& from, auto& value) {
    if constexpr (std::is_same_v<decltype(value), Offset&>)
      value = whole_number(path, name, from.at(name));
    else
      from.at(name).get_to(value);
  };
  try {
    const Json json = Json::parse(text, [](int depth, auto, auto&) { return depth <= kDeepestMeta; });
    if (!json.is_object() || !json.contains("format") || !json.contains("array_bytes"))
      fail(path, "was not written by GraphScale (no format, no array_bytes)", kRemedy);
    const Offset format = whole_number(path, "format", json.at("format"));
    if (format > kFormatOfTriples)
      fail(path, "format ", format, " is newer than ", kFormatOfTriples, ", the newest that this program reads; use a ",
           "newer GraphScale");
    if (format < kFormat) fail(path, "format ", format, " is none of GraphScale's", kRemedy);
    Meta meta;
    VersionInfo& info = meta.info;
    info.id = folder.filename().string();
    if (json.at("id") != info.id) fail(path, "is of version ", json.at("id"), ", but lies in ", info.id, kRemedy);
    info.created = json.at("created"), info.parent = json.at("parent"), info.source = json.at("source");
    info.directed = json.at("directed"), info.weighted = json.at("weighted");
    info.num_nodes = whole_number(path, "num_nodes", json.at("num_nodes"), kMaxRows);
    info.num_arcs = whole_number(path, "num_arcs", json.at("num_arcs"));
    if (format == kFormatOfTriples) {
      info.num_relations = whole_number(path, "num_relations", json.at("num_relations"), kMaxRows);
      if (info.num_relations < 1) fail(path, "names ", info.num_relations, " relations", kRemedy);
    }
    info.content_hash = json.at("content_hash");
    each_statistic(info.statistics, [&](const char* name, auto& value) { read(name, json.at("statistics"), value); });
    for (const auto& [name, bytes] : json.at("array_bytes").items()) {
      if (name.find('/') != std::string::npos) fail(path, "names a file outside its folder, ", name, kRemedy);
      meta.array_bytes[name] = whole_number(path, name.c_str(), bytes);
    }
    return meta;
  } catch (const nlohmann::json::exception& error) {
    fail(path, "is damaged: ", error.what(), kRemedy);
  }
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// ------------------------------------------------------------------------------------------------------------ arrays

NpyArray open_array(const fs::path& folder, const Meta& meta, const char* name) {
  const auto claimed = meta.array_bytes.find(name);
  if (claimed == meta.array_bytes.end()) fail(folder / kMeta, "names no ", name, kRemedy);
  std::error_code error;
  const auto bytes = fs::file_size(folder / name, error);
  if (error) fail(folder / name, "is missing or unreadable: ", error.message(), kRemedy);
  if (Offset(bytes) != claimed->second)
    fail(folder / name, "has ", bytes, " bytes, but ", kMeta, " says ", claimed->second, kRemedy);
  return NpyArray(folder / name);
}

/// Bounds of `parts` ranges that cover [0, total): [parts + 1] values from 0 on, ascending, the last one `total`.
void check_bounds(const fs::path& path, Span<const Offset> bounds, Offset parts, Offset total) {
  if (bounds.size != parts + 1) fail(path, "has ", bounds.size, " values; ", parts + 1, " are expected", kRemedy);
  if (bounds[0] != 0) fail(path, "begins with ", bounds[0], " instead of 0", kRemedy);
  for (Offset i = 0; i < parts; ++i)
    if (bounds[i + 1] < bounds[i])
      fail(path, "value ", i + 1, " is ", bounds[i + 1], ", less than the one before (", bounds[i], ")", kRemedy);
  if (bounds[parts] != total) fail(path, "ends with ", bounds[parts], ", but there are ", total, kRemedy);
}

/// One pass over each array, as fast as it can be read.
void check_arcs(const fs::path& folder, const Csr& graph) {
  constexpr Offset kBlock = 1 << 26;  // arcs between two looks at the clock: about 0.1 s
  const auto nodes = std::uint64_t(graph.num_nodes());
  Progress progress("load", "arcs", graph.num_arcs());
  for (Offset first = 0; first < graph.num_arcs(); first += kBlock) {
    const Offset count = std::min(kBlock, graph.num_arcs() - first);
    for (const RowId& target : graph.targets.subspan(first, count))
      if (target >= nodes)
        fail(folder / kTargets, "arc ", &target - graph.targets.data, " leads to row ", target, ", but there are ",
             nodes, kRemedy);
    for (const RowId& relation : graph.relations.empty() ? graph.relations : graph.relations.subspan(first, count))
      if (Offset(relation) >= graph.num_relations)
        fail(folder / kRelations, "arc ", &relation - graph.relations.data, " has relation ", relation,
             ", but there are ", graph.num_relations, kRemedy);
    for (const float& weight : graph.weights.empty() ? graph.weights : graph.weights.subspan(first, count))
      if (!(weight >= 0 && weight <= std::numeric_limits<float>::max()))
        fail(folder / kWeights, "arc ", &weight - graph.weights.data, " weighs ", weight,
             "; a finite weight of 0 or more is expected", kRemedy);
    progress.advance(count);
  }
  if (graph.num_arcs() > kBlock) progress.finish();
}

struct ArrayToWrite {
  const char* name;
  Dtype dtype;
  const void* values;
  Offset count, bytes;
};

template <class T>
ArrayToWrite to_write(const char* name, Span<const T> values) {
  return {name, dtype_of<T>(), values.data, values.size, values.size * Offset(sizeof(T))};
}

void add_names(std::vector<ArrayToWrite>& arrays, const char* bytes_name, const std::vector<char>& bytes,
               const char* bounds_name, const std::vector<Offset>& bounds) {
  const auto* values = reinterpret_cast<const std::uint8_t*>(bytes.data());
  arrays.push_back(to_write(bytes_name, Span<const std::uint8_t>(values, Offset(bytes.size()))));
  arrays.push_back(to_write<Offset>(bounds_name, bounds));
}

std::vector<ArrayToWrite> arrays_of(const BuiltGraph& graph) {
  std::vector<ArrayToWrite> arrays{to_write<Offset>(kOffsets, graph.offsets), to_write<RowId>(kTargets, graph.targets)};
  if (!graph.weights.empty()) arrays.push_back(to_write<float>(kWeights, graph.weights));
  if (graph.name_bounds.empty()) {
    arrays.push_back(to_write<std::uint64_t>(kNameNumbers, graph.name_numbers));
  } else {
    add_names(arrays, kNameBytes, graph.name_bytes, kNameBounds, graph.name_bounds);
  }
  if (graph.num_relations() > 0) {
    arrays.push_back(to_write<RowId>(kRelations, graph.relations));
    add_names(arrays, kRelationBytes, graph.relation_bytes, kRelationBounds, graph.relation_bounds);
  }
  return arrays;
}

/// XXH3, 128 bits, over each array's name and bytes.
std::string content_hash(const std::vector<ArrayToWrite>& arrays) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  if (!state) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  for (const ArrayToWrite& array : arrays) {
    XXH3_128bits_update(state.get(), array.name, std::strlen(array.name));
    XXH3_128bits_update(state.get(), array.values, std::size_t(array.bytes));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

/// Hidden files do not count: another publisher's version is under such a name before it is whole.
bool holds_visible(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string()[0] != '.') return true;
  return false;
}

/// The store's folder, removed again where it was made here and nothing came into it.
class StoreFolder {
 public:
  explicit StoreFolder(const fs::path& store) : path_(store) {
    std::error_code error;
    if (fs::is_directory(store, error)) {
      // In this order: what another publisher has just made visible is a version by the time that those are listed.
      if (holds_visible(store) && !fs::exists(store / kCurrent, error) && version_numbers(store).empty())
        throw Error(Fault::output, cat(store.string(), ": is a folder with other things in it; choose another name"));
      return;
    }
    check_writable(store);
    made_ = fs::create_directory(store, error);
    if (error) throw Error(Fault::output, cat(store.string(), ": cannot be made: ", error.message()));
  }
  StoreFolder(const StoreFolder&) = delete;
  ~StoreFolder() {
    std::error_code not_empty;
    if (made_) fs::remove(path_, not_empty);
  }

 private:
  fs::path path_;
  bool made_ = false;
};

void warn_of_full_disk(const fs::path& store, const BuiltGraph& graph) {
  Offset bytes = 0;
  for (const ArrayToWrite& array : arrays_of(graph)) bytes += array.bytes;
  if (const Offset free = free_bytes(store); free < bytes)  // no refusal: a file system that compresses may hold it
    log_warn(cat(store.string(), ": the graph has ", human_bytes(double(bytes)), ", but only ",
                 human_bytes(double(free)), " are free on its disk"));
}

void make_current(const fs::path& store, const std::string& version) { write_text(store / kCurrent, version + "\n"); }

Meta describe(const BuiltGraph& graph, const std::string& source, int threads) {
  Meta meta;
  VersionInfo& info = meta.info;
  info.created = utc_now(), info.source = source;
  info.num_nodes = graph.csr().num_nodes(), info.num_arcs = graph.csr().num_arcs();
  info.num_relations = graph.num_relations();
  info.directed = graph.directed, info.weighted = !graph.weights.empty();
  info.statistics = statistics(graph.csr(), threads);
  info.content_hash = content_hash(arrays_of(graph));
  return meta;
}

}  // namespace

Graph Graph::open(const fs::path& store, const std::string& version) {
  const std::string id = known_version(store, version);
  const fs::path folder = store / id;
  const Meta meta = read_meta(folder);
  Graph graph;
  graph.info_ = meta.info;
  graph.info_.current = id == current_name(store);
  const auto array = [&](const char* name) -> const NpyArray& {
    return graph.arrays_[name] = open_array(folder, meta, name);
  };

  Csr& csr = graph.csr_;
  csr.directed = meta.info.directed;
  csr.offsets = array(kOffsets).values<Offset>();
  csr.targets = array(kTargets).values<RowId>();
  if (meta.info.weighted) csr.weights = array(kWeights).values<float>();
  csr.num_relations = meta.info.num_relations;
  const bool triples = csr.num_relations != 0;
  if (triples) csr.relations = array(kRelations).values<RowId>();
  const Offset nodes = meta.info.num_nodes, arcs = meta.info.num_arcs;
  check_bounds(folder / kOffsets, csr.offsets, nodes, arcs);
  if (csr.targets.size != arcs || (meta.info.weighted && csr.weights.size != arcs))
    fail(folder, csr.targets.size, " targets and ", csr.weights.size, " weights for ", arcs, " arcs", kRemedy);
  if (triples && csr.relations.size != arcs)
    fail(folder / kRelations, "has ", csr.relations.size, " relations for ", arcs, " arcs", kRemedy);
  check_arcs(folder, csr);

  const auto byte_names = [&](const char* bytes_name, const char* bounds_name, Offset count) {
    const Span<const std::uint8_t> bytes = array(bytes_name).values<std::uint8_t>();
    const Span<const Offset> bounds = array(bounds_name).values<Offset>();
    check_bounds(folder / bounds_name, bounds, count, bytes.size);
    return names_of_bytes({reinterpret_cast<const char*>(bytes.data), bytes.size}, bounds);
  };
  static constexpr Offset kNoBounds[] = {0};
  graph.relation_names_ =
      triples ? byte_names(kRelationBytes, kRelationBounds, csr.num_relations) : names_of_bytes({}, {kNoBounds, 1});
  if (meta.array_bytes.count(kNameNumbers)) {
    graph.names_ = names_of_numbers(array(kNameNumbers).values<std::uint64_t>());
    if (graph.names_->size() != nodes)
      fail(folder / kNameNumbers, "has ", graph.names_->size(), " names for ", nodes, " nodes", kRemedy);
  } else {
    graph.names_ = byte_names(kNameBytes, kNameBounds, nodes);
  }
  return graph;
}

BuiltGraph Graph::copy_names() const {
  BuiltGraph copy;
  copy.directed = csr_.directed;
  if (const auto numbers = arrays_.find(kNameNumbers); numbers != arrays_.end()) {
    const auto values = numbers->second.values<std::uint64_t>();
    copy.name_numbers.assign(values.begin(), values.end());
  } else {
    const auto bytes = arrays_.at(kNameBytes).values<std::uint8_t>();
    const auto bounds = arrays_.at(kNameBounds).values<Offset>();
    copy.name_bytes.assign(bytes.begin(), bytes.end());
    copy.name_bounds.assign(bounds.begin(), bounds.end());
  }
  return copy;
}

VersionInfo publish(const fs::path& store, const BuiltGraph& graph, const std::string& source, int threads) {
  GS_EXPECT(!graph.offsets.empty(), "publish: offsets are [n + 1], but there are none");
  GS_EXPECT(graph.num_relations() == 0 || graph.relations.size() == graph.targets.size(),
            "publish: ", graph.relations.size(), " relations of ", graph.targets.size(), " arcs");
  const StoreFolder store_folder(store);
  warn_of_full_disk(store, graph);
  Meta meta = describe(graph, source, threads);
  meta.info.parent = current_name(store);
  const std::vector<Offset> numbers = version_numbers(store);
  Offset number = numbers.empty() ? 1 : numbers.back() + 1;

  OutputFolder folder(store / ".next");  // named once it is whole: others may publish meanwhile
  for (const ArrayToWrite& array : arrays_of(graph)) {
    NpyWriter out(folder.path() / array.name, array.dtype, {array.count});
    out.write(array.values, array.bytes);
    out.commit();
    meta.array_bytes[array.name] = Offset(fs::file_size(folder.path() / array.name));
  }
  for (;; ++number) {  // another publisher may take the number first
    meta.info.id = version_name(number);
    write_text(folder.path() / kMeta, to_text(meta));
    if (folder.commit_as(store / meta.info.id)) break;
  }
  make_current(store, meta.info.id);
  meta.info.current = true;
  return meta.info;
}

std::vector<VersionInfo> versions(const fs::path& store) {
  require_store(store);
  const std::string current = current_name(store);
  std::vector<VersionInfo> list;
  for (const Offset number : version_numbers(store)) {
    VersionInfo info;
    try {
      info = read_meta(store / version_name(number)).info;
    } catch (const Error& error) {
      info.damage = error.what();  // shown with the others: this is the list one repairs a store from
    }
    info.id = version_name(number), info.current = info.id == current;
    list.push_back(std::move(info));
  }
  return list;
}

VersionInfo rollback(const fs::path& store, const std::string& version) {
  std::string target = version;
  if (target.empty()) {
    const std::string current = known_version(store, "");
    target = read_meta(store / current).info.parent;
    if (target.empty()) fail(store, "version ", current, " has no parent to roll back to");
  }
  VersionInfo info = Graph::open(store, target).info();
  make_current(store, info.id);
  info.current = true;
  return info;
}

}  // namespace gs
