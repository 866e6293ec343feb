"""A fitted estimator -> a file, HTML for notebooks; and back from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import BaseEstimator

from mixedgm import store, views
from mixedgm.estimator.base import HasModel
from mixedgm.fitted import FittedModel
from mixedgm.settings import from_plain, to_plain
from mixedgm.studies.joint_discrepancy import summary_notes


class KeepingMethods(HasModel):
    """How a model is stored and shown."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which `mixedgm.load` reads back."""
        plain = {name: to_plain(value) for name, value in self.get_params(deep=False).items()}
        store.save(self._model, path, settings=plain)

    @classmethod
    def _from_store(cls, fitted: FittedModel, settings: Mapping[str, Any]) -> Self:
        known = cls._get_param_names()
        model = cls(**{k: from_plain(v) for k, v in settings.items() if k in known})
        model._adopt(fitted)
        return model

    def _repr_html_(self) -> str:
        if not hasattr(self, "fitted_"):
            return str(BaseEstimator._repr_html_.__get__(self)())
        return views.html(views.summarise(self.fitted_, summary_notes(self.fitted_)))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
