"""Making environments from a gymnasium id, a class or a function, wherever it is defined.

What a user names becomes an `EnvFactory`: plain data for run.yaml, and a call that makes one environment.
The factory itself travels to subprocess workers by cloudpickle, which takes classes and functions of a
notebook cell along by value.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import gymnasium as gym
from gymnasium import error as gym_error

from rlnb.envs.protocol import check_reset, check_step, refuse_foreign
from rlnb.errors import EnvError, MissingExtra, did_you_mean
from rlnb.run.env_reference import EnvKind, EnvReference

CELL: Final = "__main__"

Target = Callable[..., "gym.Env[Any, Any]"]


@dataclass(frozen=True)
class Spaces:
    """What one environment looks like from outside.

    Attributes:
        observation: its observation space.
        action: its action space.
        id: the gymnasium id it was made from, or None.
        max_episode_steps: the time limit, or None.
    """

    observation: gym.Space[Any]
    action: gym.Space[Any]
    id: str | None
    max_episode_steps: int | None


@dataclass
class EnvFactory:
    """Makes environments; call it for a new one.

    Attributes:
        kind: how the environment is found again.
        value: gymnasium id, "module:name", or the name in the notebook.
        kwargs: keyword arguments every environment is made with.
        target: the class or function, for what is no id.
        registered: what gymnasium knows of an id. It travels along, because an id that a cell or an imported
            package has registered here is unknown in a subprocess worker.
    """

    kind: EnvKind
    value: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    target: Target | None = None
    registered: gym.envs.registration.EnvSpec | None = field(default=None, repr=False, compare=False)
    _spaces: Spaces | None = field(default=None, repr=False, compare=False)

    @property
    def label(self) -> str:
        """The name a person knows it by."""
        return self.value.rpartition(":")[2] if self.kind is not EnvKind.ID else self.value

    @property
    def reference(self) -> EnvReference:
        """The environment as data."""
        return EnvReference.parse({"kind": self.kind.value, "value": self.value, "kwargs": self.kwargs})

    @property
    def spec(self) -> dict[str, Any]:
        """The environment as plain data, for run.yaml."""
        return self.reference.to_dict()

    def __call__(self, **extra: Any) -> gym.Env[Any, Any]:
        """Makes one environment.

        Args:
            **extra: further keyword arguments, e.g. `render_mode="rgb_array"`.

        Raises:
            EnvError: if it cannot be made or is of another protocol.
            MissingExtra: if it needs a physics engine that is not installed.
        """
        kwargs = self.kwargs | extra
        try:
            if self.target is None:
                # `exp.check()` runs gymnasium's checker once; in every environment it would cost each step
                env = gym.make(self.registered or self.value, **{"disable_env_checker": True, **kwargs})
            else:
                env = self.target(**kwargs)
        except (gym_error.Error, TypeError, ImportError) as error:
            raise _explained(error, self, kwargs) from error
        except (AssertionError, ArithmeticError, AttributeError, LookupError, ValueError) as error:
            if self.target is not None:
                raise  # a fault of the user's own code: its traceback says more than a sentence
            raise _explained(error, self, kwargs) from error
        refuse_foreign(env, self.label)
        return env

    def with_kwargs(self, kwargs: Mapping[str, Any]) -> EnvFactory:
        """Returns the factory of the same environment made with other keyword arguments."""
        return EnvFactory(self.kind, self.value, dict(kwargs), self.target, self.registered)

    def spaces(self) -> Spaces:
        """Returns the spaces; the first call makes one environment, steps it once and closes it.

        Raises:
            EnvError: if it follows the old protocol, or has no spaces.
        """
        if self._spaces is None:
            env = self()
            try:
                self._spaces = _probe(env, self.label)
            finally:
                env.close()
        return self._spaces


def resolve_env(env: object, kwargs: Mapping[str, Any] | None = None) -> EnvFactory:
    """Returns the factory of an environment.

    Args:
        env: a gymnasium id ("CartPole-v1", "module:Name-v0"), "module:Class", a class or function
            (imported or from a notebook cell), a factory, or `EnvReference` data.
        kwargs: keyword arguments to make it with.

    Raises:
        EnvError: if there is no such environment (naming the nearest), or it is of the old protocol.
    """
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise EnvError(f"env_kwargs={kwargs!r:.80} is no mapping; write e.g. env_kwargs={{'gravity': -9.8}}")
    if isinstance(env, EnvFactory):
        return env.with_kwargs({**env.kwargs, **kwargs}) if kwargs else env
    if isinstance(env, Mapping):
        env = EnvReference.parse(env)
    if isinstance(env, EnvReference):
        return _from_reference(env, dict(kwargs or {}))
    if isinstance(env, str):
        return _from_text(env, dict(kwargs or {}))
    if isinstance(env, gym.Env) or (hasattr(env, "step") and not isinstance(env, type)):
        name = type(env.unwrapped if isinstance(env, gym.Env) else env).__name__
        refuse_foreign(env, name)
        raise EnvError(
            f"env is one {name} that exists already, and training needs several; give its id, "
            "its class, or a function that makes one"
        )
    if isinstance(env, type):
        refuse_foreign(env, env.__name__)
        if not issubclass(env, gym.Env):
            raise EnvError(f"{env.__name__} is no gymnasium.Env; derive it from gymnasium.Env")
    if not callable(env):
        raise EnvError(f"env={env!r:.80} is no environment; give a gymnasium id, a class or a function")
    return _from_object(env, dict(kwargs or {}))


def _from_object(target: Any, kwargs: dict[str, Any]) -> EnvFactory:
    name = getattr(target, "__qualname__", type(target).__qualname__)
    module = getattr(target, "__module__", CELL) or CELL
    if module != CELL and _imported(module, name) is target:
        return EnvFactory(EnvKind.IMPORT, f"{module}:{name}", kwargs, target)
    return EnvFactory(EnvKind.CELL, name, kwargs, target)


def _from_text(text: str, kwargs: dict[str, Any]) -> EnvFactory:
    module, colon, name = text.rpartition(":")
    if module:
        try:
            importlib.import_module(module)  # which may register the id
        except ImportError as error:
            raise EnvError(f"env={text!r} cannot be imported: {error}") from error
        if name not in gym.registry and all(part.isidentifier() for part in name.split(".")):
            return _from_reference(EnvReference(EnvKind.IMPORT, text), kwargs)
    elif colon or not text.strip():
        raise EnvError(
            f"env={text!r} names no environment; give a gymnasium id such as 'CartPole-v1', a class or a function"
        )
    try:
        registered = gym.spec(name)
    except gym_error.Error as error:
        raise _unknown(text, error) from error
    return EnvFactory(EnvKind.ID, text, kwargs, registered=registered)


def _from_reference(reference: EnvReference, kwargs: dict[str, Any]) -> EnvFactory:
    kwargs = {**reference.kwargs, **kwargs}
    if reference.kind is EnvKind.ID:
        return _from_text(reference.value, kwargs)
    if reference.kind is EnvKind.CELL:
        found = _imported(CELL, reference.value)
        if found is None:
            raise EnvError(
                f"the environment {reference.value} is defined in the notebook and exists only where its cell has "
                "run; run that cell, or move it into a module"
            )
        return EnvFactory(EnvKind.CELL, reference.value, kwargs, found)
    module, _, name = reference.value.partition(":")
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise EnvError(f"env={reference.value!r} cannot be imported: {error}") from error
    found = _imported(module, name)
    if found is None:
        raise EnvError(
            f"{module} has no {name!r}.{did_you_mean(name, vars(sys.modules[module]))} Look at env={reference.value!r}"
        )
    if isinstance(found, type):
        refuse_foreign(found, name)
    return EnvFactory(EnvKind.IMPORT, reference.value, kwargs, found)


def _imported(module: str, name: str) -> Any:
    """What stands under that name in a module that is loaded, or None."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _probe(env: gym.Env[Any, Any], label: str) -> Spaces:
    for name in ("observation_space", "action_space"):
        if not isinstance(getattr(env, name, None), gym.Space):
            raise EnvError(f"{label} has no {name}; set self.{name} in __init__ to a gymnasium space")
    try:
        check_reset(env.reset(seed=0), label)
    except TypeError as error:
        if "seed" in str(error) and not _accepts_seed(env):
            check_reset(None, label)
        raise
    env.action_space.seed(0)
    check_step(env.step(env.action_space.sample()), label)
    spec = env.spec
    return Spaces(
        env.observation_space,
        env.action_space,
        None if spec is None else spec.id,
        None if spec is None else spec.max_episode_steps,
    )


def _accepts_seed(env: gym.Env[Any, Any]) -> bool:
    return "seed" in inspect.signature(env.unwrapped.reset).parameters


def _unknown(text: str, error: Exception) -> EnvError:
    near = did_you_mean(text.rpartition(":")[2].strip(), gym.registry)
    remedy = near or f" ({_first(error)}); import the package that registers it, or give a class or function"
    return EnvError(f"env={text!r} is no registered gymnasium environment{'.' if near else ''}{remedy}")


def _explained(error: Exception, factory: EnvFactory, kwargs: Mapping[str, Any]) -> Exception:
    """Says in one sentence why an environment could not be made."""
    text = str(error).lower()
    if isinstance(error, (gym_error.DependencyNotInstalled, ImportError)):
        for extra, words in (("mujoco", ("mujoco",)), ("box2d", ("box2d", "swig"))):
            if any(word in text for word in words):
                return MissingExtra(extra, factory.label)
    if isinstance(error, TypeError) and "incompatible with gymnasium" in text:
        return EnvError(
            f"{factory.label} follows the old reset/step protocol: it is an environment of the old gym package; "
            "wrap it with shimmy.GymV26CompatibilityV0(env=…) (pip install 'shimmy[gym-v26]')"
        )
    if kwargs:
        return EnvError(
            f"{factory.label} cannot be made with {dict(kwargs)}: {_first(error)}; correct env_kwargs"
        )
    if isinstance(error, TypeError) and factory.target is not None and _by_the_call(error):
        return EnvError(
            f"{factory.label} cannot be made without arguments: {_first(error)}; give them with env_kwargs={{…}}"
        )
    if factory.target is not None and isinstance(error, (TypeError, ImportError)):
        return error  # a fault of the user's own code: its traceback says more than a sentence
    return EnvError(f"{factory.label} cannot be made: {_first(error)}")


def _by_the_call(error: TypeError) -> bool:
    """Whether the call itself did not fit, instead of something inside the function that was called."""
    return error.__traceback__ is not None and error.__traceback__.tb_next is None


def _first(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    # gymnasium repeats the arguments, which the message names already
    return (
        lines[0].partition(" was raised from the environment creator")[0].rstrip(".")
        if lines
        else type(error).__name__
    )
