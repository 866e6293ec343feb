"""A fitted estimator and rows -> scores, predictions, level probabilities, completed rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from mixedgm.base.errors import Finding, ParameterError, TableError
from mixedgm.base.parallel import RandomState
from mixedgm.base.parameters import ensure, is_integer
from mixedgm.base.printable import few, quoted
from mixedgm.estimator.base import HasModel
from mixedgm.families import Point
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.options import Options
from mixedgm.results.tables import probability_frame
from mixedgm.table.decode import decode
from mixedgm.table.encode import UnseenArg
from mixedgm.table.files import reading
from mixedgm.table.gaps import Gaps, filled, read_gaps
from mixedgm.table.missing import length_finding, weight_array
from mixedgm.table.parted.sources import Source, is_dask, source_of
from mixedgm.table.read import Frame, as_frame, with_weights
from mixedgm.table.schema import Column, Schema

if TYPE_CHECKING:
    from mixedgm.joint.sampled import Method


def _has_discrete_target(model: HasModel) -> bool:
    fitted = getattr(model, "fitted_", None)
    return fitted is not None and any(c.role == "target" for c in fitted.schema.discrete)


class NewDataMethods(HasModel):
    """What can be asked about rows."""

    def score(
        self,
        X: object,
        y: object = None,
        sample_weight: ArrayLike | str | None = None,
        *,
        unseen: UnseenArg = "ignore",
    ) -> float:
        """Mean log pseudolikelihood per row, constant included; higher is better.

        Parameters
        ----------
        X : data frame or 2-D array
            The rows.  Cells may be missing, whatever `missing` was in the fit; covariates may not.
            A table in parts, as for `fit`, is scored part by part.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array (n,) or str, optional
            Frequencies of the rows, or the name of the column that has them.
        unseen : {"ignore", "error"}
            What to do about levels that the model does not have.  By default such a cell has the
            probability of half a row among the rows of the fit, and is ignored when the other cells
            of its row are scored, so that no fold of a cross-validation is lost.

        Returns
        -------
        float
            The mean over rows of the sum, over the observed cells of a row, of the log likelihood
            of the cell given the other observed cells.  For complete rows it is minus the sum of
            `node_scores`; with gaps, each of these counts by the share of rows that have the
            column.  Compare models on the same rows with the same gaps.

        Notes
        -----
        A cell without an edge to a missing column is scored by its conditional, as in a complete
        row; all others through the joint distribution.

        Examples
        --------
        >>> import mixedgm as mg
        >>> truth = mg.from_params({"height": "continuous", "sex": ["f", "m"]}, {}, frame="numpy")
        >>> round(truth.score([[0.0, "f"], [None, "m"]]), 3)  # two levels, and one number
        -1.153
        """
        from mixedgm.studies.missing.cells import row_score

        in_parts = self._mean_scores(X, sample_weight, unseen)
        if in_parts is not None:
            return in_parts[""]
        return row_score(self._model, self._rows(X, sample_weight=sample_weight, unseen=unseen))

    def node_scores(
        self,
        X: object,
        sample_weight: ArrayLike | str | None = None,
        *,
        unseen: UnseenArg = "ignore",
    ) -> dict[str, float]:
        """Mean negative log conditional likelihood of every column given all others.

        Parameters
        ----------
        X, sample_weight, unseen
            As for `score`.

        Returns
        -------
        dict of str to float
            For every column that is predicted, the mean over the rows that have a value of it,
            given what else the row has; NaN where no row has one.
        """
        from mixedgm.studies.missing.cells import node_losses

        in_parts = self._mean_scores(X, sample_weight, unseen)
        if in_parts is not None:
            return {name: mean for name, mean in in_parts.items() if name}
        return node_losses(self._model, self._rows(X, sample_weight=sample_weight, unseen=unseen))

    def predict(
        self,
        X: object,
        columns: str | Sequence[str] | None = None,
        *,
        value: Point | None = None,
        unseen: UnseenArg = "error",
    ) -> Any:
        """Predict columns given all others.

        Parameters
        ----------
        X : data frame or 2-D array
            The rows.  When one column is asked for, that column may be absent.  Other cells may be
            missing, too (covariates may not): a column is then predicted from what its row has.  A
            table in parts, as for `fit`, is predicted part by part.
        columns : str or sequence of str, optional
            One name gives one column; several, or None for all, give a frame.
        value : {"mode", "median", "mean"}, optional
            What predicts an ordinal or a count column: its most probable value, the smallest value
            with half of the probability up to it, or the mean (of counts; of levels where they are
            numbers, else of their scores).  By default the mode of ordinal columns, as of
            categories, and the mean of counts, as in a regression.  Of a hurdle column the mean
            (the default) and the median are those of zeros and amounts together, and the mode is
            the likelier part: zero, or the mean where it is not zero.  Continuous and categorical
            columns do not depend on it.
        unseen : {"error", "ignore"}
            Whether a level that the model does not have is an error, or is ignored when
            other cells of its row are predicted.

        Returns
        -------
        frame or column of the library of `X`; a Dask frame for a Dask frame
            Conditional means of continuous columns (medians where one has a transform) and of
            hurdle columns (zeros included), most probable levels of categorical ones, and what
            `value` says of ordinal ones and counts.  Where cells are missing, a column with a
            transform gets the mean of its normal scores, put back into the data's own units, and
            the median of a hurdle column takes what is not zero for normal.

        Raises
        ------
        DistributionError
            Where a column has an edge to a missing cell, so that it is predicted through the joint
            distribution, and the model has none: separate regressions, or see `repaired`.

        Warns
        -----
        SamplingWarning
            When exact tables would be too large, and Gibbs chains answered.

        Examples
        --------
        >>> import mixedgm as mg, numpy as np
        >>> truth = mg.from_params(
        ...     {"height": "continuous", "sex": ["f", "m"]},
        ...     {"category_shift": [[-1.0, 1.0]]},
        ...     frame="numpy",
        ... )
        >>> truth.predict([[0.5, "m"], [None, "f"], [None, None]], "height").round(3).tolist()
        [1.0, -1.0, 0.0]

        Of an ordinal column, here without any edges:

        >>> pain = mg.Column("pain", "ordinal", levels=("none", "some", "much", "very much"))
        >>> shares = {"cat_bias": np.log([0.3, 0.25, 0.35, 0.1])}
        >>> truth = mg.from_params(mg.Schema((pain,)), shares, frame="numpy")
        >>> for value in ("mode", "median", "mean"):
        ...     print(truth.predict([[None]], "pain", value=value).tolist())
        ['much']
        ['some']
        [1.25]
        """
        from mixedgm.studies.missing.cells import predicted

        model = self._model
        in_parts = self._in_parts("predict", X, columns, value=value, unseen=unseen)
        if in_parts is not None:
            return in_parts
        wanted = _wanted(model.schema, columns)
        if value not in (None, *get_args(Point)):
            raise ParameterError.must_be("value", "'mode', 'median', 'mean' or None", value)
        frame = as_frame(X)
        gaps = self._rows(frame, unseen=unseen, absent=wanted if len(wanted) == 1 else [])
        by_name = {column.name: column for column in model.schema.columns}
        nodes = [model.schema.node_index(name) for name in wanted]
        values = predicted(model, gaps, nodes, model.points(value))
        named = {name: values[node] for name, node in zip(wanted, nodes, strict=True)}
        out = _decoded([by_name[name] for name in wanted], named, frame.library)
        out = _aligned(out, X)
        if columns is None or isinstance(columns, (list, tuple, np.ndarray)):
            return out
        if frame.library == "numpy":
            return out[:, 0]
        return out.iloc[:, 0] if frame.library == "pandas" else out[wanted[0]]

    @available_if(_has_discrete_target)
    def predict_proba(
        self, X: object, columns: str | Sequence[str] | None = None, *, unseen: UnseenArg = "error"
    ) -> Any:
        """Probabilities of the values of columns given all others: of levels, or of counts.

        Parameters
        ----------
        X : data frame or 2-D array
            The rows, as for `predict`; the column itself may be absent.
        columns : str or sequence of str, optional
            One name gives one table.  Several, or None for all columns with levels or counts, give
            a dict with a table for each.
        unseen : {"error", "ignore"}
            As for `predict`.

        Returns
        -------
        frame of the library of `X`, or ndarray for an array
            One column per level, named as the level, in their order; of a count one for each of
            0, 1, 2, ... up to the largest that the schema allows; of a hurdle column "zero" and
            "not zero".
        """
        from mixedgm.studies.missing.cells import level_probabilities

        model = self._model
        if columns is None:
            columns = [c.name for c in model.schema.discrete if c.role == "target"]
        names = _wanted(model.schema, columns)
        if isinstance(columns, (list, tuple, np.ndarray)):
            return {name: self.predict_proba(X, name, unseen=unseen) for name in names}
        in_parts = self._in_parts("predict_proba", X, columns, unseen=unseen)
        if in_parts is not None:
            return in_parts
        frame = as_frame(X)
        gaps = self._rows(frame, unseen=unseen, absent=names)
        node = model.schema.nodes[model.schema.node_index(names[0])]
        shares = level_probabilities(model, gaps, node.name)
        return _aligned(probability_frame(node.value_names, shares, frame.library), X)

    def impute(
        self,
        X: object,
        n_draws: int | None = None,
        *,
        random_state: RandomState = None,
        method: Method = "auto",
        limit: int | None = None,
        unseen: UnseenArg = "error",
        parameters: str = "fixed",
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> Any:
        """Fill missing cells from what is observed in their row.

        Parameters
        ----------
        X : data frame or 2-D array
            Rows with missing cells (NaN or null).  To have a whole column filled, add it without
            values.  Columns that the model does not know are kept.
        n_draws : int, optional
            Fill the cells of a row with a draw from their joint distribution, this many times
            (multiple imputation).  By default each cell gets its conditional mean, its most
            probable level, or its median count; in a hurdle column zero, or the mean where it is
            not zero, whichever is likelier.
        random_state : int, Generator, RandomState or None
            For draws.  The first of many draws are those of few.
        method : {"auto", "exact", "gibbs"}
            "auto" is exact where the tables fit the limit, else by Gibbs chains.
        limit : int, optional
            Most entries of the tables of one row; 2**24 by default.
        unseen : {"error", "ignore"}
            Whether a level that the model does not have is an error, or stays as it is and is
            ignored when the other cells of its row are filled.
        parameters : {"fixed", "resampled"}
            By which parameters cells are drawn: always those of the model, or, for every draw,
            those of a resample of `X`, so that the spread between draws has the uncertainty of the
            fit, too.  The model's graph is kept and estimated again with random weights of the rows
            (a Bayesian bootstrap); `X` should be the training table.
        sample_weight : array (n,) or str, optional
            Frequencies of the rows, for resamples, or the name of their column.
        n_jobs : int, optional
            Processes for resamples; they change no result.
        verbose : int
            1 shows a progress bar of the resamples.

        Returns
        -------
        frame of the library of `X`, or ndarray for an array; with `n_draws`, a list of them
            Observed cells, order, index, data types and categories are those of `X`.  A column of
            an integer type stays one: what fills it is rounded.  In a column of decimals draws are
            rounded where the model was fitted to whole numbers, as those of `sample`.  A column
            with a transform gets the mean of its normal scores, put back into the data's own units,
            within the range of the data unless the transform is "nonparanormal-extrapolated".
            Columns that the model leaves out stay as they are.

        Warns
        -----
        SamplingWarning
            When means and levels had to come from Gibbs chains; it says how exact they are.

        Notes
        -----
        By default draws take the fitted parameters as the truth: their spread does not include the
        uncertainty of the fit itself.  With ``parameters="resampled"`` they are proper multiple
        imputations, given the graph: `mixedgm.pool` combines what another analysis finds in each.

        Examples
        --------
        >>> import mixedgm as mg
        >>> truth = mg.from_params(
        ...     {"height": "continuous", "sex": ["f", "m"]},
        ...     {"category_shift": [[-1.0, 1.0]]},
        ...     frame="numpy",
        ... )
        >>> truth.impute([[None, "m"], [-2.0, None]]).tolist()
        [[1.0, 'm'], [-2.0, 'f']]
        """
        from mixedgm.studies.missing.impute import draws, expected, resampled_draws
        from mixedgm.studies.queries.queries import How

        model, frame = self._model, as_frame(X)
        if parameters not in ("fixed", "resampled"):
            raise ParameterError.must_be("parameters", "'fixed' or 'resampled'", parameters)
        if parameters == "resampled" and n_draws is None:
            raise ParameterError("parameters='resampled' is for draws; say how many with n_draws.")
        how = How(method, random_state, limit)
        gaps = read_gaps(frame, model.schema, unseen=unseen)
        if n_draws is None:
            complete = expected(model, gaps, how)
            return filled(X, frame, gaps, complete.numbers, complete.codes)
        ensure(is_integer(n_draws, 1), "n_draws", "an integer of at least 1, or None", n_draws)
        if parameters == "fixed" or not gaps.missing.any():
            drawn = draws(model, gaps, int(n_draws), how)
        else:
            given = {"n_jobs": n_jobs, "verbose": verbose}
            options = Options(**(self.get_params(deep=False) | given))
            rows = read_gaps(frame, model.schema, sample_weight=sample_weight, unseen=unseen)
            drawn = resampled_draws(model, options, (rows, gaps), int(n_draws), how)
        return [filled(X, frame, gaps, each.numbers, each.codes, rounded=True) for each in drawn]

    def _in_parts(self, method: str, X: object, columns: object, **options: Any) -> Any | None:
        """What a method answers about a table in parts, put together; None for any other."""
        if is_dask(X):
            return dask_answers(self, X, method, columns, **options)
        source = source_of(X)
        if source is None:
            return None
        answer = getattr(self, method)
        parts = [answer(part, columns, **options) for part, _, _ in weighted_frames(source, None)]
        return concatenated(parts, source.library)

    def _mean_scores(
        self, X: object, sample_weight: ArrayLike | str | None, unseen: UnseenArg
    ) -> dict[str, float] | None:
        """Means of a table in parts by column, and of the score under an empty name.

        None where the table is not in parts.
        """
        if is_dask(X):
            return dask_scores(self, X, sample_weight, unseen)
        source = source_of(X)
        if source is None:
            return None
        every = weighted_frames(source, sample_weight)
        return mean_scores(
            score_sums(self._model, self._rows(frame, sample_weight=weights, unseen=unseen))
            for _, frame, weights in every
        )

    def _rows(
        self,
        X: object,
        *,
        unseen: UnseenArg,
        absent: Collection[str] = (),
        sample_weight: ArrayLike | None = None,
    ) -> Gaps:
        schema = self._model.schema
        others = set(schema.names) - set(absent)
        return read_gaps(
            as_frame(X), schema, sample_weight=sample_weight, unseen=unseen, require=others
        )


def _decoded(columns: Sequence[Column], values: Mapping[str, NDArray[Any]], library: str) -> Any:
    """The predictions as a table; means of what is not Gaussian are a column of numbers."""
    schema = Schema(
        tuple(
            column.of_means
            if not column.node_kind.is_gaussian and values[column.name].dtype.kind == "f"
            else column
            for column in columns
        )
    )
    n_rows = len(values[columns[0].name])
    numbers, codes = (
        np.array([values[column.name] for column in part]).reshape(len(part), n_rows).T
        for part in (schema.gaussian, schema.discrete)
    )
    return decode(schema, numbers, codes, library)


def _aligned(out: object, X: Any) -> Any:
    """Give predictions for a pandas frame that frame's index, so that they can be assigned."""
    if hasattr(out, "index") and hasattr(X, "index") and hasattr(out, "iloc"):
        out.index = X.index
    return out


def _wanted(schema: Schema, columns: str | Sequence[str] | None) -> list[str]:
    if columns is None:
        return list(schema.targets)
    names: list[Any] = (
        list(columns) if isinstance(columns, (list, tuple, np.ndarray)) else [columns]
    )
    if not names:
        raise ParameterError.must_be("columns", "at least one column name", columns)
    names = [schema.nodes[schema.node_index(name)].name for name in names]
    for name in names:
        if name not in schema.targets:
            raise ParameterError(
                f"{quoted(name)} is a covariate: it predicts and is not predicted. "
                f"The model predicts {few(schema.targets, 20)}."
            )
    return names


# -- tables in parts -------------------------------------------------------------------------------


def score_sums(fitted: FittedModel, gaps: Gaps) -> Mapping[str, tuple[float, float]]:
    """Return sums of losses and of weights by column, and of scores (under an empty name).

    The sums of a column are over the rows that have a value of it.
    """
    from mixedgm.studies.missing.cells import node_losses, row_score

    weights = np.ones(gaps.n_rows) if gaps.weights is None else gaps.weights
    total, known = float(weights.sum()), weights @ ~gaps.missing
    out = {"": (total * row_score(fitted, gaps), total)}
    for name, loss in node_losses(fitted, gaps).items():
        here = float(known[fitted.schema.node_index(name)])
        out[name] = (here * loss if here > 0.0 else 0.0, here)
    return out


def mean_scores(every: Iterable[Mapping[str, tuple[float, float]]]) -> dict[str, float]:
    """Return means over all parts from their sums."""
    sums: dict[str, list[float]] = {}
    for part in every:
        for name, (value, weight) in part.items():
            total = sums.setdefault(name, [0.0, 0.0])
            total[0] += value
            total[1] += weight
    return {name: value / weight if weight else np.nan for name, (value, weight) in sums.items()}


def dask_scores(
    model: Any, X: Any, sample_weight: ArrayLike | str | None, unseen: UnseenArg
) -> dict[str, float]:
    """Return means over a Dask frame by column, and of the score under an empty name.

    The partitions are scored where they are; sums come back.
    """
    import dask
    from dask.delayed import delayed

    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ParameterError(
            "rows of a Dask frame have weights by a column: give sample_weight its name."
        )
    score = delayed(_scored_partition, pure=False)
    tasks = [score(part, model, sample_weight, unseen) for part in X.to_delayed()]
    compute: Any = dask.base.compute
    with reading("the Dask frame"):
        every = [sums for sums in compute(*tasks) if sums is not None]
    if not every:
        raise TableError([Finding(None, "the table cannot be scored: no row counts", "")])
    return mean_scores(every)


def _scored_partition(
    part: Any, model: Any, sample_weight: str | None, unseen: UnseenArg
) -> Mapping[str, tuple[float, float]] | None:
    frame, weights = with_weights(as_frame(part), sample_weight)
    if not frame.n_rows or (weights is not None and not np.any(weights)):
        return None
    fitted: FittedModel = model.fitted_
    return score_sums(fitted, model._rows(frame, sample_weight=weights, unseen=unseen))


def dask_answers(model: Any, X: Any, method: str, *given: Any, **options: Any) -> Any:
    """Return a Dask frame with what a method of the model answers for every partition.

    Its columns and types are those of the answer for one row.
    """
    row = pd_row(model.schema_)
    meta = getattr(model, method)(row, *given, **options).iloc[:0]
    return X.map_partitions(_answered, model, method, given, options, meta, meta=meta)


def _answered(
    part: Any, model: Any, method: str, given: tuple[Any, ...], options: dict[str, Any], meta: Any
) -> Any:
    if not len(part):
        return meta
    return getattr(model, method)(part, *given, **options)


def pd_row(schema: Schema) -> Any:
    """Return a pandas frame with one row that fits a schema."""
    import pandas as pd

    return pd.DataFrame({c.name: [c.levels[0] if c.has_levels else 0.0] for c in schema.columns})


def weighted_frames(
    source: Source, sample_weight: ArrayLike | str | None
) -> Iterator[tuple[Any, Frame, NDArray[Any] | None]]:
    """Yield the parts of a table as they are and as frames, with the weights of their rows."""
    given, at, used = None, 0, False
    if sample_weight is not None and not isinstance(sample_weight, str):
        given, bad = weight_array(sample_weight)
        if bad is not None:
            raise TableError([bad])
    for _, native in source.frames():
        frame = as_frame(native)
        weights: Any = None if given is None else given[at : at + frame.n_rows]
        if given is None:
            frame, weights = with_weights(frame, sample_weight)
        at += frame.n_rows
        counts = weights is None or bool(np.asarray(weights).any())
        used |= counts
        short = weights is not None and len(weights) < frame.n_rows  # an error, in the end
        if frame.n_rows and counts and not short:
            yield native, frame, weights
    if given is not None and len(given) != at:
        raise TableError([length_finding(len(given), at)])
    if not at or not used:
        why = "every sample_weight is zero, so no row counts" if at else "it has no rows"
        raise TableError([Finding(None, f"the table cannot be scored: {why}", "")])


def concatenated(parts: list[Any], library: str) -> Any:
    """Return frames or columns of a library one below the other."""
    if library == "pandas":
        import pandas as pd

        plain = all(isinstance(part.index, pd.RangeIndex) for part in parts)
        return pd.concat(parts, ignore_index=plain)
    if library == "polars":
        import polars as pl

        return pl.concat(parts)
    if library == "pyarrow":
        import pyarrow as pa

        if isinstance(parts[0], pa.Table):
            return pa.concat_tables(parts, promote_options="default")
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks])
    return np.concatenate(parts)
