"""The name of a command -> what its help says."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COMMANDS", "WELCOME", "About"]


class About(NamedTuple):
    """Usage after the name, one line for the list of commands, one paragraph, examples."""

    usage: str
    summary: str
    explanation: str
    examples: str


WELCOME = """
    Find out which columns of a table are directly related: continuous and
    categorical columns together, in one network, with the strength of each edge.

    typical use:
      mixedgm demo                              the whole job on a bundled survey
      mixedgm check survey.csv                  how each column will be understood
      mixedgm fit survey.csv -o survey.mgm      learn the network, keep it in a file
      mixedgm edges survey.mgm                  who is related to whom
      mixedgm plot survey.mgm -o network.png    the picture

    A table is a CSV, TSV (also .gz) or Parquet file with a line of column names.
"""

COMMANDS = {
    "check": About(
        "TABLE [options]",
        "show how a table will be understood, and what is wrong with it",
        """
        Show each column of a table as continuous or categorical, with its levels, and list
        everything that is wrong or doubtful: missing values and the columns that cost most rows,
        identifiers (which are left out), columns that follow from others, skewed columns, numbers
        that may be codes. Nothing is fitted. The exit code is 2 if the table cannot be fitted as
        it is.
        """,
        """
        mixedgm check survey.csv
        mixedgm check survey.csv --types stage=categorical --missing drop
        """,
    ),
    "fit": About(
        "TABLE -o MODEL [options]",
        "learn the network of a table and write it to a model file",
        """
        Learn which columns are directly related, given all others. A whole path of penalties is
        solved and the best one is chosen, unless --lam gives it: the larger the penalty, the
        fewer the edges. The model goes to a file that the other commands read, a summary to the
        terminal.
        """,
        """
        mixedgm fit survey.csv -o survey.mgm
        mixedgm fit survey.csv -o survey.mgm --types stage=categorical --drop id
        mixedgm fit survey.csv -o survey.mgm --lam 0.1 --forbid age:region
        """,
    ),
    "select": About(
        "TABLE [--criterion NAME] [-o MODEL] [options]",
        "choose the penalty by a criterion and list all scores",
        """
        Follow the path of penalties from the largest down, score each, and mark the one that is
        chosen. Information criteria (ebic, bic, aic) weigh fit against the number of parameters;
        cv and holdout predict rows that were not fitted; stars and stability ask which edges come
        back in subsamples. The same --seed gives the same answer, whatever --jobs is.
        """,
        """
        mixedgm select survey.csv
        mixedgm select survey.csv --criterion cv --folds 10 --plot cv.png
        mixedgm select survey.csv --loss nodewise --per-node --plot columns.png
        mixedgm select survey.csv --criterion stability --max-false 2 -o stable.mgm
        """,
    ),
    "path": About(
        "TABLE [-o FILE] [options]",
        "solve for many penalties and list how the network grows",
        """
        Solve for a whole path of penalties, from the smallest one without edges downwards, and
        list for each the number of edges, the objective, how optimal the solution is, and the
        score by which `mixedgm fit` would choose. Ctrl-C while solving keeps what is solved.
        """,
        """
        mixedgm path survey.csv
        mixedgm path survey.csv --n-lams 100 -o path.csv
        """,
    ),
    "edges": About(
        "MODEL [-o FILE] [--format FORMAT]",
        "list the edges of a model, strongest first",
        """
        List who is related to whom. The weight has no units, so edges of all kinds can be
        compared. The sign is missing where a column has three or more levels; a partial
        correlation exists for two continuous columns only.
        """,
        """
        mixedgm edges survey.mgm
        mixedgm edges survey.mgm --format csv > edges.csv
        mixedgm edges survey.mgm -o network.graphml
        """,
    ),
    "plot": About(
        "MODEL -o PICTURE [--kind KIND] [options]",
        "draw the network, the path or the parameters of a model",
        """
        Draw a model. The network has circles for continuous and squares for categorical columns,
        and wider lines for stronger edges; where one weight towers over all others, it is cut off
        and the legend says so. The path shows how edges enter as the penalty falls.
        The parameters are one matrix with a block for every pair of columns.
        """,
        """
        mixedgm plot survey.mgm -o network.png
        mixedgm plot survey.mgm -o network.svg --minimum 0.1 --edge-labels
        mixedgm plot survey.mgm -o groups.png --node-group health=bmi,smoker
        mixedgm plot survey.mgm -o path.svg --kind path
        """,
    ),
    "predict": About(
        "MODEL TABLE [--column NAME] [options]",
        "predict columns of a table from all its other columns",
        """
        Predict each column of every row from the row's other columns: the expected value of a
        continuous column, the most probable level of a categorical one. A column that --column
        names need not be in the table; --proba gives the probability of each of its levels. Rows
        may have missing cells: a column is then predicted from what its row has.
        """,
        """
        mixedgm predict survey.mgm new.csv --column jobclass
        mixedgm predict survey.mgm new.csv --column jobclass --proba -o chances.csv
        """,
    ),
    "query": About(
        "MODEL (--marginal A,B | --mean | ...) [--given A=X,...]",
        "ask a model for distributions, means and information",
        """
        Ask the joint distribution of all columns. --marginal gives the distribution of some
        columns, all others averaged out: probabilities of levels, and means and standard
        deviations of continuous columns. --given states what is known. Answers are exact where
        their tables fit, else sampled, with standard errors. Single columns have the margins of the
        table; a pair of columns that is far from the table is named below an answer about it.
        """,
        """
        mixedgm query survey.mgm --marginal jobclass,wage --given sex=Female,age=40
        mixedgm query survey.mgm --mean --given "education=HS Grad"
        mixedgm query survey.mgm --mutual-information wage,education
        mixedgm query survey.mgm --discrepancy
        """,
    ),
    "sample": About(
        "MODEL [-n N] [-o FILE] [--given A=X,...]",
        "draw new rows from a model",
        """
        Draw rows from the joint distribution of all columns, with the names and levels of the
        table that the model was fitted to. Columns that --given names hold these values, and the
        others are drawn given them. The same --seed gives the same rows.
        """,
        """
        mixedgm sample survey.mgm -n 1000 -o rows.csv
        mixedgm sample survey.mgm -n 10 --given sex=Female --seed 7
        """,
    ),
    "impute": About(
        "MODEL TABLE [-o FILE] [--draws N]",
        "fill the missing cells of a table",
        """
        Fill each missing cell of a table from what its row has: with the expected value of a
        continuous column, the most probable level of a categorical one, or with draws from their
        distribution (--draws, for multiple imputation). Everything else stays as it is. To have a
        whole column filled, add it to the table without values.
        """,
        """
        mixedgm impute survey.mgm new.csv -o filled.csv
        mixedgm impute survey.mgm new.csv -o filled.csv --draws 20 --seed 1
        """,
    ),
    "bootstrap": About(
        "MODEL TABLE -o FOLDER [options]",
        "resample the table of a model: intervals, inclusion, stability",
        """
        Fit the model again to many resamples of the table it was fitted to, and write tables and
        pictures into a folder. The nonparametric bootstrap draws rows with replacement: how often
        each edge is found, intervals of edges, parameters and centralities, tests between edges.
        The case-dropping bootstrap leaves rows out: how many can be lost before the network looks
        different. With --checkpoint, finished resamples are kept, and --resume goes on after the
        work was stopped in whatever way, with the same results.
        """,
        """
        mixedgm bootstrap survey.mgm survey.csv -o boot
        mixedgm bootstrap survey.mgm survey.csv -o stability --kind case-dropping
        mixedgm bootstrap survey.mgm survey.csv -o boot --checkpoint kept --resume
        """,
    ),
    "compare": About(
        "TABLE --groups COLUMN -o FOLDER [options]",
        "learn one network per group of rows and test whether they differ",
        """
        Learn a network in each group of rows, at the same penalty, and list the edges side by side.
        Then shuffle the group labels many times and learn the networks again: differences that
        hardly ever arise in this way are significant. Models, tables and pictures go into a
        folder. With --checkpoint, finished shuffles are kept, and --resume goes on after the work
        was stopped in whatever way, with the same results.
        """,
        """
        mixedgm compare survey.csv --groups site -o sites
        mixedgm compare survey.csv --groups site -o sites --permutations 2000 --blocks school
        mixedgm compare survey.csv --groups site -o sites --checkpoint kept --resume
        """,
    ),
    "demo": About(
        "[-o FOLDER] [--quiet]",
        "fit a bundled survey, print the edges and draw pictures",
        """
        Do the whole job on 3,000 rows of a wage survey that comes with the package: show its
        columns, learn the network, list the edges, and write the model, the edges and three
        pictures into a folder. It takes a few seconds.
        """,
        """
        mixedgm demo
        mixedgm demo -o somewhere-else
        """,
    ),
}
