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
  std::string order = "both";
  std::string distance = "l1";
  std::string loss = "logistic";
  double margin = 9;
  double adversarial = 0;
  bool reciprocal = false;
  std::string regularizer = "none";
  double regularization = 0;
  std::string dtype = "fp32";
};

struct SamplerConfig {
  int walk_length = 40;
  int walks_per_node = 10;
  double p = 1, q = 1;
  int triples_per_tile = 32;
  int shared_negatives = 32;
  double negative_power = 0.75;
  double uniform_share = 0;
  double in_batch_share = 0;
  bool filter_negatives = false;
  bool weighted = true;
  std::string negatives_from = "auto";
  std::string topology = "replicated";
};

struct TrainingConfig {
  int epochs = 1;
  std::string optimizer = "sgd";
  double learning_rate = 0.05;
  std::string schedule = "linear";
  double final_learning_rate = 0.0001;
  double warm_up_share = 0;
  double momentum = 0.9;
  double second_moment = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double clip_gradient = 0;
  double max_row_step = 0.2;
  double curvature_limit = 3;
  int staleness = 1;
  std::uint64_t seed = 1;
  int step_walks = 0;
  bool deterministic = false;

  int steps_behind() const { return deterministic ? 0 : staleness; }  ///< of fetched rows, at most
};

struct RunConfig {
  int ranks = 0;
  std::string device = "auto";
  int threads = 0;
};

struct RanksConfig {
  std::string storage, compute;
};

struct StoreConfig {
  std::string placement = "cyclic";
  Offset hot_rows = -1;
  double device_share = 0.8;
  Offset replicated_rows = 0;
  int replicate_every = 1;
};

struct ExchangeConfig {
  std::string method = "auto";
  std::string transport = "auto";
  double timeout_s = 60;
  std::string row_type = "fp32";
  std::string compression = "none";
  double keep_share = 0.25;
  Offset feedback_rows = -1;
  std::string address;
  int port = 29400;
  std::string job;
};

struct StartConfig {
  std::string warm_start, new_nodes = "mean", frozen;
};

struct CheckpointConfig {
  int every_steps = 0;
  double every_minutes = 10;
  int keep = 2;
};

struct EvalConfig {
  std::string valid, known;
  double every = 1;
  int patience = 0;
  Offset sample = 0, candidates = 0;
};

struct MetricsConfig {
  int log_steps = 100;
  int metrics_port = 0;
  std::string metrics_address = "127.0.0.1";
  int flat_epochs = 3;
};

struct Config {
  ModelConfig model;
  SamplerConfig sampler;
  TrainingConfig training;
  RunConfig run;
  RanksConfig ranks;
  StoreConfig store;
  ExchangeConfig exchange;
  StartConfig start;
  CheckpointConfig checkpoint;
  EvalConfig eval;
  MetricsConfig metrics;
};

/// What an option may be, beside its C++ type.
struct Option {
  double min = 0, max = 0;  ///< of a number: both ends belong to it
  const char* unit = "";
  std::vector<const char*> choices = {};  ///< of a text; empty: any
  const char* help = "";
  const char* kinds = "";  ///< the kinds of model that read it, blanks between; empty: all

  Option of(const char* these_kinds) const {
    Option option = *this;
    option.kinds = these_kinds;
    return option;
  }
  static Option number(double min, double max, const char* unit, const char* help) {
    return {min, max, unit, {}, help};
  }
  static Option text(std::vector<const char*> choices, const char* help) { return {0, 0, "", choices, help}; }
  static Option boolean(const char* help) { return {0, 0, "", {}, help}; }
};

/// For Option::of.
inline constexpr const char *kOfWalks = "deepwalk node2vec", *kOfPairs = "deepwalk node2vec line",
                            *kOfTriples = "transe distmult complex rotate";

/// Calls visit(name, field, Option) once an option, in the order of the help page. The last part of a name is unique:
/// it is the option's short flag (--walk-length for sampler.walk_length).
template <class C, class Visit>
void each_option(C& c, Visit&& visit) {
  // clang-format off
  visit("model.kind", c.model.kind, Option::text(
        {"deepwalk", "node2vec", "line", "transe", "distmult", "complex", "rotate"},
        "what is learnt; deepwalk: skip-gram over random walks, uniform or weighted; node2vec: over walks biased by "
        "sampler.p and sampler.q; line: over single edges; the others: models of a knowledge graph's triples, which have "
        "defaults of their own"));
  visit("model.dim", c.model.dim, Option::number(1, 2048, "columns",
        "length of a node's vector in real numbers; complex and rotate take them as dim / 2 complex ones"));
  visit("model.window", c.model.window, Option::number(1, 64, "nodes",
        "contexts on either side of a walk's node").of(kOfWalks));
  visit("model.shrink_window", c.model.shrink_window, Option::boolean(
        "draw each node's window from 1 to model.window, as word2vec does; false: always the whole window")
        .of(kOfWalks));
  visit("model.negatives", c.model.negatives, Option::number(0.01, 1e9, "a pair",
        "negatives that a positive pair is weighed against, in expectation"));
  visit("model.order", c.model.order, Option::text({"first", "second", "both"},
        "of line; first: neighbours have like vectors (undirected graphs); second: nodes with like neighbours do; both: "
        "half of the columns each, either half scaled to length 1").of("line"));
  visit("model.distance", c.model.distance, Option::text({"l1", "l2"},
        "of transe").of("transe"));
  visit("model.loss", c.model.loss, Option::text({"logistic", "margin", "softmax"},
        "of triples; logistic: positives and negatives each by themselves; margin: positives above negatives by "
        "model.margin; softmax: the positive among its negatives").of(kOfTriples));
  visit("model.margin", c.model.margin, Option::number(0, 1000, "",
        "of the margin loss; in the logistic loss of transe and rotate the distance that scores 0").of(kOfTriples));
  visit("model.adversarial", c.model.adversarial, Option::number(0, 100, "",
        "negatives of triples are weighed by a softmax of their scores times this (self-adversarial); 0: equally")
        .of(kOfTriples));
  visit("model.reciprocal", c.model.reciprocal, Option::boolean(
        "ask for heads by a second row of each relation").of(kOfTriples));
  visit("model.regularizer", c.model.regularizer, Option::text({"none", "l2", "n3"},
        "of a triple's rows, beside the loss; l2: squares, n3: cubes of moduli").of(kOfTriples));
  visit("model.regularization", c.model.regularization, Option::number(0, 1000, "",
        "weight of model.regularizer").of(kOfTriples));
  visit("model.dtype", c.model.dtype, Option::text({"fp32", "fp16", "bf16"},
        "how rows are kept; 16-bit rows are rounded stochastically, and trained by exchange also on one rank"));

  visit("sampler.walk_length", c.sampler.walk_length, Option::number(2, 1024, "nodes",
        "nodes in one walk, its start among them").of(kOfPairs));
  visit("sampler.walks_per_node", c.sampler.walks_per_node, Option::number(1, 1e6, "walks",
        "walks started from each node in an epoch").of(kOfWalks));
  visit("sampler.p", c.sampler.p, Option::number(1e-6, 1e6, "",
        "of node2vec: a step back to the node before is 1 / p times as likely").of("node2vec"));
  visit("sampler.q", c.sampler.q, Option::number(1e-6, 1e6, "",
        "of node2vec: a step to a node that the one before has no edge to is 1 / q times as likely").of("node2vec"));
  visit("sampler.triples_per_tile", c.sampler.triples_per_tile, Option::number(1, 256, "triples",
        "triples that share negatives").of(kOfTriples));
  visit("sampler.shared_negatives", c.sampler.shared_negatives, Option::number(1, 4096, "rows",
        "negatives drawn for a tile and shared by its centres or triples (at most 256 by centres)"));
  visit("sampler.negative_power", c.sampler.negative_power, Option::number(0, 1, "",
        "negatives are drawn in proportion to degree to this power"));
  visit("sampler.uniform_share", c.sampler.uniform_share, Option::number(0, 1, "of negatives",
        "drawn uniformly instead"));
  visit("sampler.in_batch_share", c.sampler.in_batch_share, Option::number(0, 1, "of negatives",
        "drawn instead from the nodes that the rank's step trains"));
  visit("sampler.filter_negatives", c.sampler.filter_negatives, Option::boolean(
        "of triples: a negative that makes a triple of the graph is left out").of(kOfTriples));
  visit("sampler.weighted", c.sampler.weighted, Option::boolean(
        "follow edges in proportion to their weight where the graph has weights; false: uniformly").of(kOfPairs));
  visit("sampler.negatives_from", c.sampler.negatives_from, Option::text({"auto", "local", "global"},
        "local: each rank draws negatives from its own rows, which then never travel; global: from the whole graph; "
        "auto: local where rows are placed cyclically, global where a partitioner placed them or deterministic"));
  visit("sampler.topology", c.sampler.topology, Option::text({"replicated", "uva", "partitioned"},
        "where the graph lies; replicated: on every rank's device; uva: in pinned host memory that the device reads; "
        "partitioned: each rank has its own nodes' arcs and walkers travel"));

  visit("training.epochs", c.training.epochs, Option::number(0, 1e6, "epochs",
        "passes over all start nodes; 0 writes the initial vectors"));
  visit("training.optimizer", c.training.optimizer, Option::text({"sgd", "momentum", "adagrad", "adam"},
        "how a row takes its gradient; adagrad keeps one sum a row, adam counts a row's own steps; all but sgd train by "
        "exchange also on one rank"));
  visit("training.learning_rate", c.training.learning_rate, Option::number(0, 1e9, "",
        "learning rate of the first step"));
  visit("training.schedule", c.training.schedule, Option::text({"linear", "cosine", "constant"},
        "linear, cosine: falls to training.final_learning_rate over the whole run; constant: stays"));
  visit("training.final_learning_rate", c.training.final_learning_rate, Option::number(0, 1e9, "",
        "where the linear and cosine schedules end"));
  visit("training.warm_up_share", c.training.warm_up_share, Option::number(0, 1, "of the run",
        "the learning rate first rises from 0 over this share of all walks"));
  visit("training.momentum", c.training.momentum, Option::number(0, 0.999999, "",
        "of momentum: what is kept of a row's last step; of adam: decay of the first moment"));
  visit("training.second_moment", c.training.second_moment, Option::number(0, 0.999999999, "",
        "of adam: decay of the second moment"));
  visit("training.epsilon", c.training.epsilon, Option::number(1e-30, 1, "",
        "of adagrad and adam: added to the divisor"));
  visit("training.weight_decay", c.training.weight_decay, Option::number(0, 1e9, "",
        "share of a touched row, times the learning rate, that a step takes away; trains by exchange also on one rank"));
  visit("training.clip_gradient", c.training.clip_gradient, Option::number(0, 1e30, "",
        "largest L2 norm of a row's summed gradient, in exchanged training; 0: any"));
  visit("training.max_row_step", c.training.max_row_step, Option::number(0, 1e30, "",
        "largest L2 norm of a row's step, in exchanged training: gradients of many walks are summed, and hubs would "
        "diverge; 0: any"));
  visit("training.curvature_limit", c.training.curvature_limit, Option::number(0, 1e9, "",
        "a row's step in a tile is shortened where learning rate times a bound of the loss's curvature along the row "
        "exceeds this; 0: never"));
  visit("training.staleness", c.training.staleness, Option::number(0, 8, "steps",
        "how many steps a fetched row may be behind in exchanged training; 0, and where deterministic: fetch, compute and "
        "push take turns"));
  visit("training.seed", c.training.seed, Option::number(0, 0x1p64, "",
        "decides walks, negatives and initial vectors"));
  visit("training.step_walks", c.training.step_walks, Option::number(0, 1 << 24, "walks",
        "walks trained between two reports of loss and rate; 0: chosen from the graph and device"));
  visit("training.deterministic", c.training.deterministic, Option::boolean(
        "one writer in walk order: the same bits for any number of threads (CPU only)"));

  visit("run.ranks", c.run.ranks, Option::number(0, 4096, "ranks",
        "threads of this process that share the table as ranks, a GPU each where there are GPUs; 0: one, or as many as "
        "mpirun, srun or torchrun started"));
  visit("run.device", c.run.device, Option::text({},
        "auto, cpu, cuda or cuda:N; auto: the first usable GPU, else the CPU"));
  visit("run.threads", c.run.threads, Option::number(0, 4096, "threads",
        "CPU threads; 0: all that this process may use"));

  visit("ranks.storage", c.ranks.storage, Option::text({},
        "ranks that keep rows, as in 0-3,6; empty: all"));
  visit("ranks.compute", c.ranks.compute, Option::text({},
        "ranks that train walks, as in 0-3,6; empty: all"));

  visit("store.placement", c.store.placement, Option::text({"cyclic", "partition"},
        "cyclic: row r belongs to rank r mod ranks; partition: to the part that METIS puts it in"));
  visit("store.hot_rows", c.store.hot_rows, Option::number(-1, 4294967294.0, "rows",
        "rows of highest degree that a rank keeps in device memory, the others in pinned host memory; -1: as many as "
        "store.device_share holds"));
  visit("store.device_share", c.store.device_share, Option::number(0, 1, "of free memory",
        "device memory that hot rows may take after all else"));
  visit("store.replicated_rows", c.store.replicated_rows, Option::number(0, 4294967294.0, "rows",
        "rows of highest degree that every rank keeps a copy of, updated by all-reduce"));
  visit("store.replicate_every", c.store.replicate_every, Option::number(1, 1e6, "steps",
        "steps between two updates of the replicated rows"));

  visit("exchange.method", c.exchange.method, Option::text({"auto", "rows", "allreduce"},
        "rows: unique rows and gradients travel; allreduce: the whole table on every rank and dense gradients, as "
        "data-parallel frameworks do, for comparison; auto: rows, or in place on one rank"));
  visit("exchange.transport", c.exchange.transport, Option::text({"auto", "local", "tcp", "mpi"},
        "how ranks talk; auto: local for threads, mpi under mpirun and srun, tcp under torchrun; GPUs move rows by NCCL"));
  visit("exchange.timeout_s", c.exchange.timeout_s, Option::number(0.1, 1e6, "s",
        "a rank that does not answer for so long ends the others"));
  visit("exchange.row_type", c.exchange.row_type, Option::text({"fp32", "fp16", "bf16"},
        "rows on the wire"));
  visit("exchange.compression", c.exchange.compression, Option::text({"none", "fp16", "int8", "topk", "onebit"},
        "gradients on the wire; int8: a scale a row; onebit: two a 32 columns; topk and onebit keep what they leave out for "
        "the row's next gradient"));
  visit("exchange.keep_share", c.exchange.keep_share, Option::number(0, 1, "of columns",
        "what topk sends of a gradient, at least one value"));
  visit("exchange.feedback_rows", c.exchange.feedback_rows, Option::number(-1, 4294967294.0, "rows",
        "rows of highest degree for which topk and onebit keep what they leave out, 8 dim bytes each on every rank; "
        "-1: all"));
  visit("exchange.address", c.exchange.address, Option::text({},
        "tcp: where rank 0 listens; empty: MASTER_ADDR"));
  visit("exchange.port", c.exchange.port, Option::number(1, 65535, "",
        "tcp: rank 0's port where MASTER_PORT is not set"));
  visit("exchange.job", c.exchange.job, Option::text({},
        "tcp: a word that the ranks of one job share, so that jobs never mix; empty: the launcher's job id"));

  visit("start.warm_start", c.start.warm_start, Option::text({},
        "run folder whose vectors the rows start from, by name; empty: as drawn"));
  visit("start.new_nodes", c.start.new_nodes, Option::text({"mean", "random"},
        "where nodes start that start.warm_start has no vector of; mean: at the mean of their neighbours that it has; "
        "random: as drawn, as do those without such a neighbour"));
  visit("start.frozen", c.start.frozen, Option::text({},
        "file of node names, one a line, whose vectors stay as they start; trains by exchange also on one rank; empty: "
        "none"));

  visit("checkpoint.every_steps", c.checkpoint.every_steps, Option::number(0, 1e9, "steps",
        "between two checkpoints; 0: by time alone"));
  visit("checkpoint.every_minutes", c.checkpoint.every_minutes, Option::number(0, 1e6, "minutes",
        "between two checkpoints; 0: by steps alone. There is one at the end, and one where a signal stops the run, in "
        "any case"));
  visit("checkpoint.keep", c.checkpoint.keep, Option::number(0, 1e6, "checkpoints",
        "of the run that stay, beside the one of the best validation; 0: none is written, and the run cannot be "
        "resumed"));

  visit("eval.valid", c.eval.valid, Option::text({},
        "file of triples (of node vectors: pairs) held out, which are ranked as training goes: the best vectors by "
        "filtered MRR are those that are saved; empty: none, the last are"));
  visit("eval.known", c.eval.known, Option::text({},
        "files, commas between, of further true triples, such as the test's, which eval.valid's are not ranked against; "
        "those of the graph and of eval.valid never are"));
  visit("eval.every", c.eval.every, Option::number(1e-6, 1e6, "epochs",
        "between two rankings of eval.valid; may be a part of an epoch"));
  visit("eval.patience", c.eval.patience, Option::number(0, 1e6, "rankings",
        "training ends after so many in a row without a better MRR; 0: only where it would anyway"));
  visit("eval.sample", c.eval.sample, Option::number(0, 4294967294.0, "triples",
        "of eval.valid that are ranked, drawn once by training.seed; 0: all"));
  visit("eval.candidates", c.eval.candidates, Option::number(0, 4294967294.0, "entities",
        "sampled for each query in place of all; 0: all"));

  visit("metrics.log_steps", c.metrics.log_steps, Option::number(1, 1e9, "steps",
        "between two lines of metrics.jsonl"));
  visit("metrics.metrics_port", c.metrics.metrics_port, Option::number(0, 65535, "",
        "where rank 0 answers GET /metrics with the run's metrics as Prometheus text; 0: it does not listen"));
  visit("metrics.metrics_address", c.metrics.metrics_address, Option::text({},
        "the address that it listens at; 0.0.0.0: every network of the machine"));
  visit("metrics.flat_epochs", c.metrics.flat_epochs, Option::number(0, 1e9, "epochs",
        "warn once the mean loss has changed by less than 0.1 % in each of so many epochs; 0: never"));
  // clang-format on
}

/// One setting given on the command line: `name` as typed without leading dashes ("dim", "model.dim", "walk-length"),
/// `value` its text, `place` for messages ("--dim", "--set model.dim").
struct Setting {
  std::string name, value, place;
};

/// Defaults of the model's kind, then the JSON file (empty: none), then the settings, each option once.
/// Throws usage, before anything else is read: unknown key (with the nearest valid name), wrong type, out of range,
/// duplicate key, contradictory options; each with its place (FILE: /model/dim or the flag). Input: FILE unreadable.
Config read_config(const std::string& file, const std::vector<Setting>& settings);

/// The options' defaults for a kind of model.
Config default_config(const std::string& kind);
bool is_knowledge_graph_model(const std::string& kind);  ///< transe, distmult, complex, rotate

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

/// Options that are not as this kind of model has them by default though it does not read them, each as a sentence.
std::vector<std::string> idle_options(const Config& config);

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
std::string options_json();                 ///< [{name, flag, type, default, defaults, min, max, unit, choices, help}]
std::string options_json_schema();          ///< draft 2020-12, of the configuration file

}  // namespace gs
