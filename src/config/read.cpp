// A configuration from its JSON file and the command line.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "graphscale/files.hpp"

#include "src/config/assign.hpp"

namespace gs {
namespace {

using config::Written;
using Json = nlohmann::json;

/// Takes a configuration file's values one after another, so that a key given twice is seen and a number's digits are
/// kept as written. Two levels: an object of sections, each an object of options.
class ConfigFile : public nlohmann::json_sax<Json> {
 public:
  ConfigFile(const std::string& file, std::string_view text, Config& config)
      : file_(file), text_(text), config_(config) {}

  bool null() override { return take(Written::Form::other, "null"); }
  bool boolean(bool value) override { return take(Written::Form::boolean, value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { return take(Written::Form::number, std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return take(Written::Form::number, std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return take(Written::Form::number, text); }
  bool string(std::string& value) override { return take(Written::Form::string, value); }
  bool binary(Json::binary_t&) override { return take(Written::Form::other, "binary data"); }
  bool start_array(std::size_t) override { return take(Written::Form::other, "an array"); }
  bool end_array() override { return true; }

  bool start_object(std::size_t) override {
    if (path_.size() == 2) return take(Written::Form::other, "an object");
    path_.emplace_back(), keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    path_.pop_back(), keys_.pop_back();
    return true;
  }

  bool key(std::string& name) override {
    path_.back() = name;
    if (!keys_.back().insert(name).second) refuse("the key is there twice; keep one of them");
    if (path_.size() == 1) {
      require_section(name);
    } else if (option_name(full_name()) != full_name()) {
      refuse(config::unknown_option(full_name()));
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
    const std::string_view read = text_.substr(0, std::min(position, text_.size()));
    const auto line = std::count(read.begin(), read.end(), '\n') + 1;
    const std::size_t line_start = read.rfind('\n') + 1;  // npos + 1 is 0
    std::string what = error.what();                      // "[json...] parse error at line 3, column 5: what"
    for (const char* mark : {"] ", ": "})
      if (const std::size_t at = what.find(mark); at != std::string::npos) what.erase(0, at + 2);
    const char last = read.empty() ? ' ' : read.back();
    if (last == '/' || last == '#') what += "; JSON has no comments";
    throw Error(Fault::usage, cat(file_, ":", line, ":", read.size() - line_start, ": ", what));
  }

 private:
  bool take(Written::Form form, const std::string& text) {
    const Written value{form, text, place()};
    if (path_.size() < 2)
      refuse(cat(form == Written::Form::string ? "a string" : text, "; expected an object of ",
                 path_.empty() ? "sections" : "options"));
    config::assign(config_, full_name(), value);
    return true;
  }

  void require_section(const std::string& name) const {
    const std::vector<std::string> sections = config::section_names();
    if (std::find(sections.begin(), sections.end(), name) != sections.end()) return;
    if (!option_name(name).empty()) refuse(config::unknown_option(name));
    const std::string near = nearest_name(name, sections);
    std::string all;
    for (const std::string& section : sections) all += (all.empty() ? "" : ", ") + section;
    refuse("no such section; " + (near.empty() ? "the sections are " + all : "did you mean /" + near + "?"));
  }

  std::string full_name() const { return path_[0] + "." + path_[1]; }
  std::string place() const {
    std::string place = file_ + ": ";
    for (const std::string& part : path_) place += "/" + part;
    return path_.empty() ? place + "/" : place;
  }
  [[noreturn]] void refuse(const std::string& what) const { throw Error(Fault::usage, place() + ": " + what); }

  const std::string& file_;
  std::string_view text_;
  Config& config_;
  std::vector<std::string> path_;            // the key that is being read in each open object
  std::vector<std::set<std::string>> keys_;  // all keys so far of each open object
};

void read_file(const std::string& file, Config& config) {
  const std::string content = read_text(file);
  std::string_view text = content;
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // a byte order mark would shift the columns
  ConfigFile reader(file, text, config);
  Json::sax_parse(text.begin(), text.end(), &reader);
}

/// `config` with all that file and settings say.
Config assemble(Config config, const std::string& file, const std::vector<Setting>& settings) {
  if (!file.empty()) read_file(file, config);

  std::map<std::string, std::string> places;  // of each option that the command line has set
  for (const Setting& setting : settings) {
    const std::string name = option_name(setting.name);
    if (name.empty()) throw Error(Fault::usage, setting.place + ": " + config::unknown_option(setting.name));
    const auto [earlier, is_first] = places.emplace(name, setting.place);
    if (!is_first)
      throw Error(Fault::usage,
                  cat(setting.place, ": ", name, " was set by ", earlier->second, " before; set it once"));
    config::assign(config, name, {Written::Form::flag, setting.value, setting.place});
  }
  return config;
}

bool is_device(const std::string& name) {
  if (name == "auto" || name == "cpu" || name == "cuda") return true;
  return name.rfind("cuda:", 0) == 0 && name.size() > 5 && name.size() <= 8 &&
         name.find_first_not_of("0123456789", 5) == std::string::npos;
}

[[noreturn]] void contradict(const std::string& one, const std::string& other, const std::string& why) {
  throw Error(Fault::usage, cat(one, " contradicts ", other, ": ", why));
}

void check_deterministic(const Config& config) {
  if (!config.training.deterministic) return;
  const std::string me = "training.deterministic", compression = config.exchange.compression;
  if (config.run.device.rfind("cuda", 0) == 0)
    contradict(me, "run.device " + config.run.device, "on a GPU many walks write at once; set run.device to cpu");
  if (config.sampler.negatives_from == "local")
    contradict(me, "sampler.negatives_from local", "a rank's own rows depend on how many ranks there are; use global");
  if (config.store.replicated_rows > 0)
    contradict(me, "store.replicated_rows", "sums over ranks would depend on how many ranks there are; set it to 0");
  if (compression == "topk" || compression == "onebit")
    contradict(me, "exchange.compression " + compression, "what a rank keeps back depends on how many ranks there are");
}

/// The comparator has one way to be.
void check_exchange(const Config& config) {
  if (config.exchange.method != "allreduce") return;
  const std::string me = "exchange.method allreduce";
  if (!config.ranks.storage.empty() || !config.ranks.compute.empty())
    contradict(me, "ranks.storage and ranks.compute", "every rank has the whole table; use exchange.method rows");
  if (config.exchange.compression != "none")
    contradict(me, "exchange.compression", "dense gradients are summed in float32; use exchange.method rows");
  if (config.store.replicated_rows > 0) contradict(me, "store.replicated_rows", "all rows are replicated; set it to 0");
  if (config.store.placement != "cyclic") contradict(me, "store.placement", "all rows are replicated; leave it cyclic");
}

/// What only some kinds of model can be.
void check_kind(const Config& config) {
  const std::string& kind = config.model.kind;
  const std::string me = "model.kind " + kind;
  const bool of_triples = is_knowledge_graph_model(kind), of_edges = kind == "line";
  if (of_edges && (config.sampler.walk_length % 2 == 1 || config.sampler.walk_length > 64))
    throw Error(Fault::usage, cat("sampler.walk_length ", config.sampler.walk_length, ": ", me,
                                  " takes it as twice the edges of a tile: an even number, at most 64"));
  if (of_edges && config.model.order == "both" && config.model.dim % 2 == 1)
    throw Error(Fault::usage, cat("model.dim ", config.model.dim, ": model.order both gives each order half of the ",
                                  "columns; choose an even number, or one order"));
  if ((kind == "complex" || kind == "rotate") && config.model.dim % 2 == 1)
    throw Error(Fault::usage, cat("model.dim ", config.model.dim, ": ", me,
                                  " takes pairs of columns as complex numbers; choose an ", "even number"));
  if (!of_triples && config.sampler.shared_negatives > 256)
    throw Error(Fault::usage,
                cat("sampler.shared_negatives ", config.sampler.shared_negatives, ": at most 256 by ", me));
  if ((of_triples || of_edges) && config.sampler.topology == "partitioned")
    contradict(me, "sampler.topology partitioned", "only walks travel; use replicated or uva");
  if (of_triples && config.store.replicate_every > 1)
    contradict(me, "store.replicate_every", "relations are updated at every step; set it to 1");
  if (config.sampler.in_batch_share > 0 && config.training.deterministic)
    contradict("training.deterministic", "sampler.in_batch_share",
               "what a rank's step trains depends on how many ranks there are; set it to 0");
}

}  // namespace

Config default_config(const std::string& kind) {
  Config config;
  config.model.kind = kind;
  if (!is_knowledge_graph_model(kind)) return config;
  const bool by_distance = kind == "transe" || kind == "rotate";
  config.model.loss = by_distance ? "logistic" : "softmax";
  config.model.adversarial = by_distance ? 1 : 0;
  config.model.negatives = by_distance ? 1 : 256;
  config.sampler.shared_negatives = 256;
  config.sampler.negative_power = 0;
  config.training.epochs = 100;
  config.training.optimizer = "adagrad";
  config.training.learning_rate = 0.1;
  config.training.max_row_step = 0;
  return config;
}

bool is_knowledge_graph_model(const std::string& kind) {
  return kind == "transe" || kind == "distmult" || kind == "complex" || kind == "rotate";
}

Config read_config(const std::string& file, const std::vector<Setting>& settings) {
  Config config = assemble(Config(), file, settings);
  if (config.model.kind != Config().model.kind) config = assemble(default_config(config.model.kind), file, settings);
  check_config(config);
  return config;
}

void check_config(const Config& config) {
  const std::string& device = config.run.device;
  if (!is_device(device))
    throw Error(Fault::usage, cat("run.device: \"", device, "\" is no device; expected auto, cpu, cuda or cuda:N"));
  check_deterministic(config);
  check_exchange(config);
  check_kind(config);
  if (config.eval.patience > 0 && config.eval.valid.empty())
    throw Error(Fault::usage, "eval.patience needs eval.valid: name a file of triples or pairs that are ranked");
  const TrainingConfig& training = config.training;
  if (training.schedule != "constant" && training.final_learning_rate > training.learning_rate)
    throw Error(Fault::usage,
                cat("training.final_learning_rate ", training.final_learning_rate, " is above training.learning_rate ",
                    training.learning_rate, ": lower it, or set training.schedule to constant"));
}

}  // namespace gs
