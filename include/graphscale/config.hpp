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

/// What an option may be. Numbers: [min, max] with a unit. Strings: one of `choices` where there are any.
struct Option {
  double min = 0, max = 0;
  const char* unit = "";
  const char* help = "";
  std::vector<const char*> choices = {};
};

/// Calls visit(name, field, Option) once an option, in the order of the help page. The last part of a name is unique:
/// it is the option's short flag (--walk-length for sampler.walk_length).
template <class C, class Visit>
void each_option(C& c, Visit&& visit) {
  visit("model.kind", c.model.kind, Option{0, 0, "", "what is learnt: deepwalk = skip-gram over uniform or weighted random walks", {"deepwalk"}});
  visit("model.dim", c.model.dim, Option{1, 2048, "columns", "length of a node's vector"});
  visit("model.window", c.model.window, Option{1, 64, "nodes", "contexts on either side of a walk's node"});
  visit("model.shrink_window", c.model.shrink_window, Option{0, 0, "", "draw each node's window from 1..window, as word2vec does; false: always the whole window"});
  visit("model.negatives", c.model.negatives, Option{0.01, 1000, "per pair", "negatives that a positive pair is weighed against, in expectation"});
  visit("sampler.walk_length", c.sampler.walk_length, Option{2, 1024, "nodes", "nodes in one walk, its start among them"});
  visit("sampler.walks_per_node", c.sampler.walks_per_node, Option{1, 1e6, "walks", "walks started from each node in an epoch"});
  visit("sampler.shared_negatives", c.sampler.shared_negatives, Option{1, 256, "rows", "negatives drawn for a tile and shared by its centres"});
  visit("sampler.negative_power", c.sampler.negative_power, Option{0, 1, "", "negatives are drawn in proportion to degree to this power"});
  visit("sampler.weighted", c.sampler.weighted, Option{0, 0, "", "follow edges in proportion to their weight where the graph has weights; false: uniformly"});
  visit("training.epochs", c.training.epochs, Option{0, 1e6, "epochs", "passes over all start nodes; 0 writes the initial vectors"});
  visit("training.learning_rate", c.training.learning_rate, Option{0, 1e9, "", "learning rate of the first step"});
  visit("training.schedule", c.training.schedule, Option{0, 0, "", "linear: falls to final_learning_rate over the whole run; constant: stays", {"linear", "constant"}});
  visit("training.final_learning_rate", c.training.final_learning_rate, Option{0, 1e9, "", "where the linear schedule ends"});
  visit("training.seed", c.training.seed, Option{0, 1.8446744073709552e19, "", "decides walks, negatives and initial vectors"});
  visit("training.step_walks", c.training.step_walks, Option{0, 1 << 24, "walks", "walks trained between two reports of loss and rate; 0: chosen from the graph and device"});
  visit("training.deterministic", c.training.deterministic, Option{0, 0, "", "one writer in walk order: the same bits for any number of threads (cpu only)"});
  visit("run.device", c.run.device, Option{0, 0, "", "auto, cpu, cuda or cuda:N"});
  visit("run.threads", c.run.threads, Option{0, 4096, "threads", "CPU threads; 0: all that this process may use"});
  visit("metrics.every", c.metrics.every, Option{1, 1e9, "steps", "steps between two lines of metrics.jsonl"});
}

/// One setting given on the command line: `name` as typed without dashes ("dim", "model.dim", "walk-length"), `value`
/// its text, `place` for messages ("--dim", "--set").
struct Setting {
  std::string name, value, place;
};

/// Defaults, then the JSON file (may be empty: none), then the settings in order.
/// Throws usage, before anything else is read: unknown key (with the nearest valid name), wrong type, out of range,
/// duplicate key, contradictory options; each with its place (FILE:/model/dim or the flag).
Config read_config(const std::string& file, const std::vector<Setting>& settings);

/// Throws usage where options contradict each other.
void check_config(const Config& config);

/// The full name of the option that `name` stands for (full name or unique last part, '-' read as '_'), or empty.
std::string option_name(const std::string& name);

/// The valid name nearest to `name` among `names` by edit distance, or empty where none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& names);
std::vector<std::string> option_names();

/// true/false/yes/no/1/0/on/off in any spelling of case; throws usage on all else, naming `place`.
bool parse_bool(const std::string& text, const std::string& place);

std::string to_json(const Config& config);   ///< nested objects, two-space indent
std::string options_text();                  ///< for people: one option a paragraph
std::string options_json();                  ///< [{name, type, default, min, max, unit, choices, help}]
std::string options_json_schema();           ///< draft 2020-12, of the configuration file

}  // namespace gs
