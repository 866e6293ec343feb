"""A fitted model in -> tables, text, HTML, files and pictures of it, computing nothing new."""

from mixedgm.views.export import to_adjacency, to_networkx, write
from mixedgm.views.notebook import html
from mixedgm.views.plot import NetworkDrawing, plot_network
from mixedgm.views.plot_parameters import plot_parameters
from mixedgm.views.plot_path import plot_path
from mixedgm.views.plot_selection import plot_selection
from mixedgm.views.positions import positions
from mixedgm.views.summary import Summary, summarise
from mixedgm.views.tables import (
    edges_columns,
    edges_frame,
    interaction_frame,
    nodes_columns,
    nodes_frame,
    path_columns,
    path_frame,
    probability_frame,
)
from mixedgm.views.text import edges_text, table_text

__all__ = [
    "NetworkDrawing",
    "Summary",
    "edges_columns",
    "edges_frame",
    "edges_text",
    "html",
    "interaction_frame",
    "nodes_columns",
    "nodes_frame",
    "path_columns",
    "path_frame",
    "plot_network",
    "plot_parameters",
    "plot_path",
    "plot_selection",
    "positions",
    "probability_frame",
    "summarise",
    "table_text",
    "to_adjacency",
    "to_networkx",
    "write",
]
