// Every option of a training run, once: name, type, default, range, unit, sentence. Reading, writing, flags, help,
// the JSON schema and the run's record are visitors of the one list `each_option`.
#pragma once

#include "graphscale/core.hpp"

namespace gs {

struct ModelConfig {
  std::string kind = "deepwalk";
  int dim = 128;
  int window = 10;
  bool shrink_window = true;
  double negatives = 5;
};

struct SamplerConfig {
  int walk_length = 40;
  int walks_per_node = 10;
  int shared_negatives = 32;
  double negative_power = 0.75;
  bool weighted = true;
};

struct TrainingConfig {
  int epochs = 1;
  double learning_rate = 0.05;
  std::string schedule = "linear";
  double final_learning_rate = 0.0001;
  double curvature_limit = 3;
  std::uint64_t seed = 1;
  int step_walks = 0;
  bool deterministic = false;
};

struct RunConfig {
  std::string device = "auto";
  int threads = 0;
};

struct MetricsConfig {
  int every = 100;
};

struct Config {
  ModelConfig model;
  SamplerConfig sampler;
  TrainingConfig training;
  RunConfig run;
  MetricsConfig metrics;
};

/// What an option may be, beside its C++ type.
struct Option {
  double min = 0, max = 0;  ///< of a number: both ends belong to it
  const char* unit = "";
  std::vector<const char*> choices = {};  ///< of a text; empty: any
  const char* help = "";

  static Option number(double min, double max, const char* unit, const char* help) {
    return {min, max, unit, {}, help};
  }
  static Option text(std::vector<const char*> choices, const char* help) { return {0, 0, "", choices, help}; }
  static Option boolean(const char* help) { return {0, 0, "", {}, help}; }
};

/// Calls visit(name, field, Option) once an option, in the order of the help page. The last part of a name is unique:
/// it is the option's short flag (--walk-length for sampler.walk_length).
template <class C, class Visit>
void each_option(C& c, Visit&& visit) {
  // clang-format off
  visit("model.kind", c.model.kind, Option::text({"deepwalk"},
        "what is learnt; deepwalk: skip-gram over random walks, uniform or weighted"));
  visit("model.dim", c.model.dim, Option::number(1, 2048, "columns",
        "length of a node's vector"));
  visit("model.window", c.model.window, Option::number(1, 64, "nodes",
        "contexts on either side of a walk's node"));
  visit("model.shrink_window", c.model.shrink_window, Option::boolean(
        "draw each node's window from 1 to model.window, as word2vec does; false: always the whole window"));
  visit("model.negatives", c.model.negatives, Option::number(0.01, 1000, "a pair",
        "negatives that a positive pair is weighed against, in expectation"));

  visit("sampler.walk_length", c.sampler.walk_length, Option::number(2, 1024, "nodes",
        "nodes in one walk, its start among them"));
  visit("sampler.walks_per_node", c.sampler.walks_per_node, Option::number(1, 1e6, "walks",
        "walks started from each node in an epoch"));
  visit("sampler.shared_negatives", c.sampler.shared_negatives, Option::number(1, 256, "rows",
        "negatives drawn for a tile and shared by its centres"));
  visit("sampler.negative_power", c.sampler.negative_power, Option::number(0, 1, "",
        "negatives are drawn in proportion to degree to this power"));
  visit("sampler.weighted", c.sampler.weighted, Option::boolean(
        "follow edges in proportion to their weight where the graph has weights; false: uniformly"));

  visit("training.epochs", c.training.epochs, Option::number(0, 1e6, "epochs",
        "passes over all start nodes; 0 writes the initial vectors"));
  visit("training.learning_rate", c.training.learning_rate, Option::number(0, 1e9, "",
        "learning rate of the first step"));
  visit("training.schedule", c.training.schedule, Option::text({"linear", "constant"},
        "linear: falls to training.final_learning_rate over the whole run; constant: stays"));
  visit("training.final_learning_rate", c.training.final_learning_rate, Option::number(0, 1e9, "",
        "where the linear schedule ends"));
  visit("training.curvature_limit", c.training.curvature_limit, Option::number(0, 1e9, "",
        "a row's step in a tile is shortened where learning rate times a bound of the loss's curvature along the row "
        "exceeds this; 0: never"));
  visit("training.seed", c.training.seed, Option::number(0, 0x1p64, "",
        "decides walks, negatives and initial vectors"));
  visit("training.step_walks", c.training.step_walks, Option::number(0, 1 << 24, "walks",
        "walks trained between two reports of loss and rate; 0: chosen from the graph and device"));
  visit("training.deterministic", c.training.deterministic, Option::boolean(
        "one writer in walk order: the same bits for any number of threads (CPU only)"));

  visit("run.device", c.run.device, Option::text({},
        "auto, cpu, cuda or cuda:N; auto: the first usable GPU, else the CPU"));
  visit("run.threads", c.run.threads, Option::number(0, 4096, "threads",
        "CPU threads; 0: all that this process may use"));

  visit("metrics.every", c.metrics.every, Option::number(1, 1e9, "steps",
        "steps between two lines of metrics.jsonl"));
  // clang-format on
}

/// One setting given on the command line: `name` as typed without leading dashes ("dim", "model.dim", "walk-length"),
/// `value` its text, `place` for messages ("--dim", "--set model.dim").
struct Setting {
  std::string name, value, place;
};

/// Defaults, then the JSON file (empty: none), then the settings, each option once.
/// Throws usage, before anything else is read: unknown key (with the nearest valid name), wrong type, out of range,
/// duplicate key, contradictory options; each with its place (FILE: /model/dim or the flag). Input: FILE unreadable.
Config read_config(const std::string& file, const std::vector<Setting>& settings);

/// Throws usage where options contradict each other.
void check_config(const Config& config);

/// The full name of the option that `name` stands for (full name or unique last part, '-' read as '_'), or empty.
std::string option_name(const std::string& name);

/// The valid name nearest to `name` among `names` by edit distance, or empty where none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& names);

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`, each counted 1.
int edit_distance(std::string_view a, std::string_view b);

/// true/false/yes/no/1/0/on/off in any spelling of case; throws usage on all else, naming `place`.
bool parse_bool(const std::string& text, const std::string& place);

/// An option in words, for help pages.
struct OptionText {
  std::string name;           ///< "sampler.walk_length"
  std::string section, flag;  ///< "sampler", "walk-length"
  std::string type;           ///< integer | number | boolean | string
  std::string default_value;  ///< "40"
  std::string range;          ///< "2 to 1024 nodes", "linear or constant", or empty
  std::string help;
};
std::vector<OptionText> option_texts();  ///< in the order of each_option

std::string to_json(const Config& config);  ///< nested objects, two-space indent; reads back as the same configuration
std::string options_text();                 ///< for people: one option a paragraph
std::string options_json();                 ///< [{name, flag, type, default, min, max, unit, choices, help}]
std::string options_json_schema();          ///< draft 2020-12, of the configuration file

}  // namespace gs
