"""A fitted estimator with moderated edges -> the model at a value of its moderators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from mixedgm.estimator.base import HasModel
from mixedgm.studies.conditioned import model_at


class ModerationMethods(HasModel):
    """What can be asked about edges that vary."""

    def at(self, f: Mapping[Any, Any]) -> Self:
        """Return the ordinary model at given values of the moderators.

        Parameters
        ----------
        f : mapping of column name to value
            A value of every moderator, for example ``{"age": 40}``.

        Returns
        -------
        MixedGraphicalModel
            A model of all other columns, whose edges are those at these values; the effects of the
            moderators on a column itself are in its node terms.  It can be asked, drawn, sampled
            and saved like any other; other covariates stay covariates.  Nothing was fitted, so
            `lam_`, `kkt_` and `objective_` are NaN; the estimator's parameters are those of this
            model.

        Raises
        ------
        ParameterError
            For a name that is not a moderator, a moderator without value, a level that had no rows.

        Warns
        -----
        ExtrapolationWarning
            When a value is outside the range of the rows that the model was fitted to.

        Examples
        --------
        >>> import mixedgm as mg, numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> age, x = rng.uniform(20, 60, 500), rng.normal(size=500)
        >>> y = (age - 40) / 20 * x + rng.normal(size=500)
        >>> table = pd.DataFrame({"age": age, "x": x, "y": y})
        >>> model = mg.MixedGraphicalModel(moderators=["age"]).fit(table)
        >>> [model.at({"age": value}).edges_[0].sign for value in (25, 55)]
        ['-', '+']
        """
        return self._with_model(model_at(self._model, f))

    def plot_moderation(
        self,
        moderator: str,
        values: Sequence[Any] | None = None,
        f: Mapping[Any, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Draw the network at several values of a moderator, side by side.

        Parameters
        ----------
        moderator : str
            The moderator that changes from picture to picture.
        values : sequence, optional
            Its values.  By default its mean and one standard deviation below and above, or all
            levels that have rows.
        f : mapping of column name to value, optional
            Values of the other moderators; by default their means or most frequent levels.
        **options
            As in `plot`, except for `ax`, `predictability` and `legend`.

        Returns
        -------
        list of drawings
            With `ax` and `positions`; nodes in the same places, widths on the same scale.
        """
        from mixedgm.studies.conditioned import models_along
        from mixedgm.views.plot_groups import plot_groups

        models, names = models_along(self._model, moderator, values, f)
        return plot_groups(models, names, **options)
