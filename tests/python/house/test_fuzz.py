"""Every fuzz target is whole: a check, a corpus, and a test of a crate that runs both."""

from __future__ import annotations

import tomllib

import pytest
from house import ROOT

TARGETS = [target["name"] for target in tomllib.loads((ROOT / "fuzz" / "Cargo.toml").read_text())["bin"]]


def test_every_target_is_in_the_manifest() -> None:
    assert sorted(path.stem for path in (ROOT / "fuzz" / "targets").glob("*.rs")) == sorted(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_has_a_check_a_corpus_and_a_test(name: str) -> None:
    assert (ROOT / "fuzz" / "checks" / f"{name}.rs").is_file()
    assert f'"../checks/{name}.rs"' in (ROOT / "fuzz" / "targets" / f"{name}.rs").read_text()
    assert any((ROOT / "fuzz" / "corpus" / name).iterdir())
    tests = [path.read_text() for path in (ROOT / "crates").glob("*/tests/arbitrary.rs")]
    assert sum(f'check_corpus("{name}", {name}::check)' in text for text in tests) == 1
