"""Settings as keyword arguments, in scikit-learn's shape: a constructor that stores, `get_params`, `set_params`."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

from clickbridge.errors import SettingError
from clickbridge.settings import Setting, Settings, declared_in, grouped, own_first


class Parameters:
    """Takes settings as keyword arguments and only stores them. The property `settings` checks them."""

    name: ClassVar[str]
    about: ClassVar[str]
    Settings: ClassVar[type[Settings]] = Settings
    _more_help: ClassVar[str] = ""
    """What `help` says of the parameters in `_more_parameters`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        keyword = inspect.Parameter.KEYWORD_ONLY
        declared = cls.declared().values()
        own = [inspect.Parameter(s.name, keyword, default=s.default, annotation=type(s.default)) for s in declared]
        cls.__signature__ = inspect.Signature([*cls._more_parameters(), *own])  # type: ignore[attr-defined]
        cls.__doc__ = cls._help()

    @classmethod
    def _help(cls) -> str:
        """The docstring that `help` shows: the class's own text, its name in a spec, what the constructor takes beside
        settings, and all settings by group."""
        own = inspect.cleandoc(str(cls.__dict__.get("__doc__") or getattr(cls, "about", "")))
        named = f"In a spec: `{cls.name}`, {cls.about}." if hasattr(cls, "about") else ""
        return "\n\n".join(part for part in (own, named, cls._more_help, *grouped(cls.declared().values())) if part)

    @classmethod
    def _more_parameters(cls) -> list[inspect.Parameter]:
        """Parameters of the constructor beside the settings."""
        return []

    def __new__(cls, *values: object, **params: object) -> Self:
        """Refuses a setting without its name, and says how it is written."""
        kinds = [p.kind for p in inspect.signature(cls.__init__).parameters.values()]
        by_place = (
            sum(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
            - 1
        )
        if len(values) > by_place and inspect.Parameter.VAR_POSITIONAL not in kinds:
            raise TypeError(_by_name(cls, values[by_place]))
        return super().__new__(cls)

    def __init__(self, **params: object) -> None:
        declared = self.declared()
        unknown = [name for name in params if name not in declared]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {', '.join(unknown)}; it has {', '.join(declared)}")
        for name, setting in declared.items():
            setattr(self, name, params.get(name, setting.default))
        self._given = frozenset(params)
        self._follow_the_paper()

    def _follow_the_paper(self) -> None:
        """With `as_printed`, what nobody has given is as the paper has it; without, it is our default."""
        declared = self.declared()
        if "as_printed" in declared:
            for name in self.Settings.printed.keys() - self._given:
                setattr(self, name, self._unless_given(declared[name]))

    def _unless_given(self, setting: Setting) -> Any:
        printed = str(getattr(self, "as_printed", False)).lower() in ("true", "1")
        return self.Settings.printed.get(setting.name, setting.default) if printed else setting.default

    @classmethod
    def declared(cls) -> dict[str, Setting]:
        """The settings of this model, by name."""
        return declared_in(cls.Settings)

    @classmethod
    def setting_names(cls) -> list[str]:
        """The names of this model's settings."""
        return list(cls.declared())

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """The settings by name, as in scikit-learn.

        Parameters
        ----------
        deep : bool
            Also give the settings of the models inside, if there are any.

        Returns
        -------
        dict
            The value of each setting.
        """
        return {name: getattr(self, name) for name in self.declared()}

    def set_params(self, **params: object) -> Self:
        """Checks and stores settings. They apply to the next fit; what is fitted already stays as it is.

        Parameters
        ----------
        **params
            Settings as keyword arguments.

        Returns
        -------
        Model
            The model itself.
        """
        declared = self.declared()
        for name, value in params.items():
            if name not in declared:
                raise SettingError(f"{self.name} has no setting {name!r}; it has {', '.join(declared)}")
            setattr(self, name, declared[name].check(value))
        self._given |= params.keys()
        if "as_printed" in params:
            self._follow_the_paper()
        return self

    @property
    def settings(self) -> Any:
        """The current settings, checked, as an object that cannot be changed."""
        return self.Settings(**{name: getattr(self, name) for name in self.declared()})

    def __repr__(self) -> str:
        declared = self.declared()
        given = self.get_params(deep=False).items()
        changed = {
            name: value for name, value in given if name not in declared or value != self._unless_given(declared[name])
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _by_name(kind: type[Parameters], value: object) -> str:
    """What is said of a value without its name: `PLS(600)` and `Mart(BM25(), PLS())`."""
    name = kind.__name__
    if isinstance(value, Parameters):
        return f"{name} takes its models as one list: {name}([…, {type(value).__name__}()])"
    own = own_first(kind.declared().values())
    if not own:
        return f"{name} has no settings; got {value!r:.80}"
    like = [s for s in own if type(s.default) is type(value)]
    shown = f"{like[0].name}={value!r:.40}" if like else f"{own[0].name}={own[0].default!r}"
    return f"{name} takes settings by name: {name}({shown})"
