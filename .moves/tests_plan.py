"""Where every test goes."""
import re

# tests/unit: old -> new, by folder
UNIT = {
    # base
    **{f"{n}": f"base/{n}" for n in ("test_atomic", "test_compiled", "test_errors", "test_parallel",
       "test_printable", "test_progress")},
    "parts/test_cluster": "base/parts/test_cluster", "parts/test_local": "base/parts/test_local",
    # fit
    "test_certificate": "fit/test_certificate", "test_fitted": "fit/test_fitted",
    "test_precompile": "fit/test_precompile", "test_settings": "fit/test_settings",
    # store
    "test_store": "store/test_model_file", "test_wide_files": "store/test_wide_files",
    # model
    "model/test_pair_conditionals": "model/test_pair_conditionals",
    # table
    **{f"table/{o}": f"table/checks/{n}" for o, n in (
        ("test_column_checks", "test_columns"), ("test_dependence", "test_dependence"),
        ("test_effort", "test_effort"), ("test_findings", "test_check"),
        ("test_identifiers", "test_identifiers"), ("test_infer", "test_kinds_of_columns"),
        ("test_structural_gaps", "test_structural_gaps"), ("test_ames", "test_ames"))},
    "table/test_parted": "table/parted/test_design",
    "table/test_failing_sources": "table/parted/test_sources",
    # joint
    "joint/test_trees": "joint/test_tree", "joint/test_effort": "joint/test_plan",
    "solve/test_margins": "joint/test_margins", "solve/test_spiked_margins": "joint/test_spiked_margins",
    # objective
    "objective/test_conditional_likelihood": "objective/test_conditional",
    "objective/test_gaussian_terms": "objective/test_pseudolikelihood",
    # path
    "completion/test_completer": "path/test_completion",
    "path/test_unshrunken": "path/test_refits",
    # select
    "path/test_criteria": "select/test_criteria", "path/test_error_rates": "select/test_error_rates",
    "path/test_graph_search": "select/test_graph_search", "path/test_stability": "select/test_stability",
    "path/test_growing": "select/test_selection", "path/test_per_node": "select/test_per_node",
    "inference/test_block_variances": "select/test_block_variances",
    "inference/test_rivals": "select/test_rivals", "inference/test_rough": "select/test_rough",
    # inference
    # results
    "views/test_colours": "results/test_colours", "views/test_export": "results/test_export",
    "views/test_summary": "results/test_summary", "views/test_tables": "results/test_tables",
    "views/test_hostile_names": "pictures/test_hostile_names",
    "views/conftest": "pictures/conftest", "views/models": "pictures/models",
    "views/test_labels": "pictures/network/test_labels",
    "views/test_network_style": "pictures/network/test_appearance",
    "views/test_plot": "pictures/network/test_plot", "views/test_rings": "pictures/network/test_rings",
    "views/test_plot_bootstrap": "pictures/test_bootstrap", "views/test_plot_check": "pictures/test_check",
    "views/test_plot_selection": "pictures/test_path",
    # studies
    "studies/test_adequacy": "studies/fit_check/test_adequacy",
    "studies/test_centrality": "studies/resampling/test_replicates",
    "studies/test_descriptions": "studies/edges/test_descriptions",
    "studies/test_discrepancy": "studies/fit_check/test_discrepancy",
    "studies/test_effects": "studies/edges/test_effects",
    "studies/test_equal_margins": "studies/groups/test_equal_margins",
    "inference/test_differences": "studies/groups/test_differences",
    "studies/test_graph_refit": "studies/fit_check/test_graph_refit",
    "studies/test_graphs": "studies/edges/test_graphs",
    "studies/test_joint_cells": "studies/missing/test_cells",
    "studies/test_known": "studies/queries/test_conditioned",
    "studies/test_meanings": "studies/fit_check/test_meanings",
    "studies/test_observed": "studies/queries/test_observed",
    "studies/test_oddity": "studies/fit_check/test_oddity",
    "studies/test_predictability": "studies/fit_check/test_predictability",
    "studies/test_random_graph": "studies/edges/test_random_graph",
    "studies/test_resampling": "studies/resampling/test_resamples",
    "studies/test_shuffle": "studies/groups/test_shuffle",
    "studies/test_spiked_answers": "studies/queries/test_spiked_answers",
    # report
    **{f"html_report/{n}": f"report/{n}" for n in ("test_details", "test_findings", "test_graph")},
    "html_report/test_bundle": "report/test_document",
}
SURFACE = {
    "estimator": ("test_estimator_convergence", "test_estimator_frames", "test_estimator_penalties",
        "test_estimator_predictions", "test_estimator_property", "test_estimator_sampling",
        "test_estimator_saving", "test_estimator_selection", "test_estimator_transform",
        "test_every_kind", "test_every_model", "test_options", "test_sklearn", "test_public_names"),
    "cli": ("test_cli", "test_cli_bootstrap", "test_cli_check", "test_cli_compare",
        "test_cli_errors", "test_cli_missing", "test_cli_names", "test_cli_query",
        "test_cli_select", "test_cli_test"),
    "table": ("test_dask", "test_declared_kinds", "test_hostile_tables", "test_left_out",
        "test_parts", "test_unseen_levels", "test_wide_tables"),
    "fit": ("test_likelihood", "test_likelihood_covariates", "test_moderated",
        "test_moderated_fits", "test_nodewise", "test_refit", "test_scored_likelihood",
        "test_shrunken_blocks"),
    "select": ("test_growing_grids", "test_per_node", "test_selection_by_prediction"),
    "studies/resampling": ("test_bootstrap", "test_bootstrap_intervals", "test_bootstrap_running",
        "test_bootstrap_tables", "test_bootstrap_truth", "test_degenerate_resamples"),
    "studies/edges": ("test_edge_tests",),
    "studies/groups": ("test_compare", "test_compare_differences"),
    "studies/fit_check": ("test_check_fit",),
    "studies/queries": ("test_margins", "test_observed", "test_queries", "test_queries_covariates",
        "test_sampled_answers", "test_scored_joint"),
    "studies/missing": ("test_impute", "test_imputer", "test_incomplete_rows", "test_missing_model",
        "test_missing_report", "test_pooling"),
    "diagnostics": ("test_diagnostics",),
    "report": ("test_report",),
    "pages": ("test_docs", "test_speed_table"),
}
NAMES = {"test_cli": "test_command_line"}


def short(room: str, name: str) -> str:
    for front in {"cli": ("test_cli_",), "estimator": ("test_estimator_",),
                  "studies/resampling": ("test_bootstrap_",)}.get(room, ()):
        if name.startswith(front):
            return "test_" + name.removeprefix(front)
    return NAMES.get(name, name)


ALL: dict[str, str] = {}
for before, after in UNIT.items():
    ALL[f"tests/unit/{before}.py"] = f"tests/unit/{after}.py"
for room, names in SURFACE.items():
    for name in names:
        ALL[f"tests/surface/{name}.py"] = f"tests/surface/{room}/{short(room, name)}.py"
MOVES = {b: a for b, a in ALL.items() if b != a}
# near lists of defects name some files without their folder
DOTTED = {b.removesuffix(".py").replace("/", "."): a.removesuffix(".py").replace("/", ".")
          for b, a in MOVES.items()}
DOTTED["tests.unit.views.models"] = "tests.unit.pictures.models"


def special(name: str, text: str) -> str:
    if name in MOVES:
        deeper = MOVES[name].count("/") - name.count("/")
        if deeper:
            text = re.sub(r"(Path\(__file__\)(?:\.resolve\(\))?\.parents\[)(\d+)\]",
                          lambda m: f"{m[1]}{int(m[2]) + deeper}]", text)
    text = text.replace("from tests.unit import test_precompile", "from tests.unit.fit import test_precompile")
    return text
