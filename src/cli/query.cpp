#include "graphscale/query.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "src/cli/commands.hpp"

namespace gs::cli {
namespace {

struct Arguments {
  std::string run, names_file, metric = "cosine";
  std::vector<std::string> nodes;
  QueryOptions options;
  std::string head, relation, tail;  // of a question to a knowledge graph's model
  std::vector<std::string> excluded_files;
  bool json = false;
};

const std::map<std::string, Metric> kMetrics{{"cosine", Metric::cosine}, {"dot", Metric::dot}, {"l2", Metric::l2}};

/// what: "node", "relation"
RowId row_of(const std::string& wanted, const NodeNames& names, const std::string& run, const char* what) {
  if (const auto row = names.find(wanted)) return *row;
  std::string similar;
  for (const std::string& name : names.similar(wanted, 3)) similar += (similar.empty() ? "" : ", ") + name;
  throw Error(Fault::input, cat(run, ": no ", what, " is named \"", wanted, "\"",
                                similar.empty() ? "" : "; names like it: " + similar));
}

// Names that are not UTF-8 have U+FFFD in their place; the row still tells them apart.
void print(const nlohmann::ordered_json& answer) {
  std::cout << answer.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

void print_lines(const std::vector<Neighbour>& neighbours, const NodeNames& names) {
  for (const Neighbour& neighbour : neighbours)
    std::cout << names.name(neighbour.row) << '\t' << neighbour.score << '\n';
}

nlohmann::ordered_json json_of(const std::vector<Neighbour>& neighbours, const NodeNames& names) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Neighbour& neighbour : neighbours)
    list.push_back({{"name", names.name(neighbour.row)}, {"row", neighbour.row}, {"score", neighbour.score}});
  return list;
}

// ----------------------------------------------------------------------------------------------------- nearest nodes

using Answers = std::vector<std::vector<Neighbour>>;

void print_text(const Arguments& arguments, const Embeddings& embeddings, const Answers& answers) {
  const bool larger = larger_is_better(arguments.options.metric);
  for (std::size_t q = 0; q < answers.size(); ++q) {
    std::cout << (q == 0 ? "" : "\n") << "# " << arguments.nodes[q] << ": " << arguments.metric << ", "
              << (larger ? "larger is nearer" : "smaller is nearer") << '\n';
    print_lines(answers[q], embeddings.names());
  }
}

void print_json(const Arguments& arguments, const Embeddings& embeddings, const Answers& answers) {
  nlohmann::ordered_json queries = nlohmann::ordered_json::array();
  for (std::size_t q = 0; q < answers.size(); ++q)
    queries.push_back({{"name", arguments.nodes[q]}, {"neighbours", json_of(answers[q], embeddings.names())}});
  print({{"metric", arguments.metric},
         {"larger_is_nearer", larger_is_better(arguments.options.metric)},
         {"queries", std::move(queries)}});
}

void print_nearest(Arguments& arguments) {
  arguments.options.metric = kMetrics.at(arguments.metric);
  const Embeddings embeddings = Embeddings::open(arguments.run, arguments.names_file);
  std::vector<RowId> rows;
  for (const std::string& node : arguments.nodes)
    rows.push_back(row_of(node, embeddings.names(), arguments.run, "node"));

  const Answers answers = nearest(embeddings.rows(), rows, arguments.options);
  if (arguments.json)
    print_json(arguments, embeddings, answers);
  else
    print_text(arguments, embeddings, answers);
}

// ------------------------------------------------------------------------------------------------------ best answers

/// The entities that the files' triples have as answers to the query, ascending.
std::vector<RowId> known_answers(const std::vector<std::string>& files, const kernels::TripleQuery& query,
                                 const TripleRun& run) {
  std::vector<RowId> answers;
  for (const std::string& file : files) {
    const Triples known = read_triples(file, run.entities().names(), run.relations());
    for (std::size_t i = 0; i < known.heads.size(); ++i) {
      const RowId head = known.heads[i], tail = known.tails[i];
      if (known.relations[i] == query.relation && (query.asks_head ? tail : head) == query.entity)
        answers.push_back(query.asks_head ? head : tail);
    }
  }
  std::sort(answers.begin(), answers.end());
  return answers;
}

void print_answers(const Arguments& arguments, bool asks_head) {
  const std::string& known_name = asks_head ? arguments.tail : arguments.head;
  const TripleRun run = TripleRun::open(arguments.run);
  const NodeNames& names = run.entities().names();
  const kernels::TripleQuery query{row_of(known_name, names, arguments.run, "entity"),
                                   row_of(arguments.relation, run.relations(), arguments.run, "relation"), asks_head};
  const std::vector<RowId> left_out = known_answers(arguments.excluded_files, query, run);

  const auto answers = best_answers(run.model(), query, arguments.options.k, left_out, arguments.options.threads);
  if (arguments.json)
    return print({{asks_head ? "tail" : "head", known_name},
                  {"relation", arguments.relation},
                  {"asked", asks_head ? "head" : "tail"},
                  {"answers", json_of(answers, names)}});
  std::cout << "# " << (asks_head ? "?" : known_name) << ' ' << arguments.relation << ' '
            << (asks_head ? known_name : "?") << ": larger is likelier\n";
  print_lines(answers, names);
}

void run(Arguments& arguments, bool has_relation, bool has_head, bool has_tail) {
  if (arguments.options.k < 0)
    throw Error(Fault::usage, cat("-k: ", arguments.options.k, " is negative; expected 0 or more"));
  if (!has_relation && arguments.nodes.empty())
    throw Error(
        Fault::usage,
        "graphscale query: NAME, or --relation with --head or --tail, is required; see `graphscale query --help`");
  if (has_relation && has_head == has_tail)
    throw Error(Fault::usage,
                cat("--relation: ", has_head ? "both --head and --tail are" : "neither --head nor --tail is",
                    " given; expected one, the other is asked for"));
  if (has_relation)
    print_answers(arguments, has_tail);
  else
    print_nearest(arguments);
}

}  // namespace

void add_query(CLI::App& app, Common& common) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& command =
      *app.add_subcommand("query", "Print the nodes nearest to given ones, or a knowledge graph's best answers");
  command.add_option("RUN", arguments->run, "a run's folder, its embeddings folder, or an .npy file")->required();
  // The names as they came: a container's conversion would take "{}" for an empty list.
  const auto keep = [arguments](const CLI::results_t& nodes) { return arguments->nodes = nodes, true; };
  CLI::Option* nodes = command.add_option("NAME", keep, "nodes by name; put -- before names that begin with a dash")
                           ->expected(1, CLI::detail::expected_max_vector_size)
                           ->allow_extra_args();
  command.add_option("-k", arguments->options.k, "neighbours a node, or answers [10]")->option_text("N");
  CLI::Option* metric = command.add_option("--metric", arguments->metric, "cosine | dot | l2 [cosine]")
                            ->check(CLI::IsMember(&kMetrics))
                            ->option_text("NAME");
  CLI::Option* self =
      command.add_flag("--include-self", arguments->options.include_self, "let a node be among its own neighbours");
  command.add_flag("--json", arguments->json, "print one JSON object");
  CLI::Option* names = command
                           .add_option("--row-names", arguments->names_file,
                                       "names, one line a row; default: names.txt beside the array")
                           ->option_text("FILE");
  CLI::Option* relation =
      command.add_option("--relation", arguments->relation, "ask a knowledge graph's model, with --head or --tail")
          ->excludes(nodes, metric, self, names)
          ->option_text("NAME");
  CLI::Option* head = command.add_option("--head", arguments->head, "print its likeliest tails by the relation")
                          ->needs(relation)
                          ->option_text("NAME");
  CLI::Option* tail = command.add_option("--tail", arguments->tail, "print its likeliest heads by the relation")
                          ->needs(relation)
                          ->option_text("NAME");
  command.add_option("--exclude-known", arguments->excluded_files, "lines `head relation tail`: no answers of these")
      ->needs(relation)
      ->option_text("FILE ...");
  command.callback([=, &common] {
    arguments->options.threads = common.thread_count();
    run(*arguments, relation->count() > 0, head->count() > 0, tail->count() > 0);
  });
}

}  // namespace gs::cli
