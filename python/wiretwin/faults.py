"""What is wrong in a file that a model of pydantic describes: file, key, value, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import tomli_w
from pydantic import BaseModel, ValidationError

__all__ = ["explain", "quoted", "shown"]


def explain(name: str, error: ValidationError, model: type[BaseModel]) -> str:
    """Return one line for each fault of a document.

    Parameters
    ----------
    name
        The file, as the user named it.
    error
        What the model said.
    model
        The model of the whole document.
    """
    lines = []
    for fault in error.errors(include_url=False):
        key = _key(fault["loc"])
        kind, context = fault["type"], fault.get("ctx", {})
        given = shown(fault.get("input"))
        if kind == "missing":
            lines.append(f"{name}: {key} is absent; it must be given")
        elif kind == "extra_forbidden":
            allowed = ", ".join(_siblings(model, fault["loc"]))
            lines.append(f"{name}: {key} = {given}; this key is not known; allowed are {allowed}")
        elif kind == "value_error":
            lines.append(f"{name}: {key}: {context['error']}")
        elif kind == "too_short":
            lines.append(f"{name}: {key} is empty; allowed is at least {context['min_length']}")
        else:
            lines.append(f"{name}: {key} = {given}; {_allowed(kind, context, fault['msg'])}")
    return "\n".join(lines)


def shown(value: object, limit: int = 80) -> str:
    """Return a value as an error shows it."""
    if value is None:
        return "(absent)"
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def quoted(name: str) -> str:
    """Quote a name as a TOML key, by way of the library's own quoting of a value."""
    return tomli_w.dumps({"k": name}).removeprefix("k = ").rstrip("\n")


def _allowed(kind: str, context: Mapping[str, Any], message: str) -> str:
    bounds = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    if kind in bounds:
        return f"allowed is {words[bounds[kind]]} {context[bounds[kind]]:.10g}"
    types = {
        "finite_number": "allowed is a finite number",
        "float_type": "allowed is a number",
        "int_type": "allowed is a whole number",
        "bool_type": "allowed is true or false",
        "string_type": "allowed is a text in quotes",
        "dict_type": "allowed is a table",
        "list_type": "allowed is a list",
        "tuple_type": "allowed is a list of tables",
        "model_type": "allowed is a table",
    }
    if kind == "literal_error":
        return f"allowed is {context['expected']}"
    return types.get(kind, message)


def _key(location: Sequence[int | str]) -> str:
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            plain = part.replace("_", "").isalnum() and part.isascii()
            text += ("." if text else "") + (part if plain else quoted(part))
    return text or "the file"


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models that a field's type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _siblings(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """Return the keys allowed where an unknown one was found."""
    for part in location[:-1]:
        # The number of a table in a list, or the name of one among tables of one kind.
        if isinstance(part, int) or part not in model.model_fields:
            continue
        model = next(_models(model.model_fields[part].annotation), model)
    return list(model.model_fields)
