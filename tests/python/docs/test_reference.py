"""The reference pages name every key that the formats have, and no format has a key they leave out."""

from __future__ import annotations

import re

import pytest
from pages import ROOT
from pydantic import BaseModel

from wiretwin import results, twin


def models(module: object) -> list[type[BaseModel]]:
    """The public models of a module."""
    found = [value for name, value in vars(module).items() if not name.startswith("_")]
    return [
        value
        for value in found
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.__name__
    ]


def named(page: str) -> set[str]:
    text = re.sub(r"```.*?```", "", (ROOT / "docs" / "reference" / page).read_text(), flags=re.S)
    return set(re.findall(r"`(\w+)`", text))


@pytest.mark.parametrize(("module", "page"), [(results, "result-format.md"), (twin, "twin.md")])
def test_every_key_of_a_format_is_documented(module: object, page: str) -> None:
    keys = {key for model in models(module) for key in model.model_fields}
    assert len(keys) > 20
    assert keys - named(page) == set()


def test_every_column_is_documented_with_its_type() -> None:
    text = (ROOT / "docs" / "reference" / "result-format.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.MULTILINE))
    assert rows == results.SAMPLE_COLUMNS


def test_every_key_of_a_model_is_documented() -> None:
    source = (ROOT / "crates" / "net" / "src" / "model.rs").read_text()
    lists = re.findall(r'const \w+_KEYS: &str = "(.*?)";', source, re.S)
    keys = set(re.findall(r"\w+", " ".join(lists)))
    assert len(keys) > 15
    assert keys - named("model-json.md") == set()


def test_the_example_of_a_network_element_is_short() -> None:
    page = (ROOT / "docs" / "how-to" / "add-a-network-element.md").read_text()
    (name,) = re.findall(r"literalinclude} \.\./\.\./(\S+)", page)
    assert (ROOT / name).read_text().count("\n") <= 150
    assert f"--test {(ROOT / name).stem}" in page
