"""``{mpi-names}``: what of mpi4py is simulated and what is refused, from the simulator's own tables."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def _names(names: set[str]) -> nodes.paragraph:
    paragraph = nodes.paragraph()
    for number, name in enumerate(sorted(names)):
        paragraph += nodes.Text(", " if number else "")
        paragraph += nodes.literal("", name)
    return paragraph


def _public(owner: Any) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


class MpiNames(SphinxDirective):
    """One entry for each class, and one for the module."""

    def run(self) -> list[nodes.Node]:
        """Make the list, anew in every build."""
        from wiretwin.mpi import module, names

        self.env.note_reread()
        simulated: Any = module.modules()["mpi4py.MPI"]
        listed = nodes.definition_list()
        for name, refused in names.METHODS.items():
            owner = getattr(simulated, name)
            parents = [parent for parent in owner.__mro__[1:] if parent.__name__ in names.METHODS]
            inherited = {other for parent in parents for other in _public(parent)}
            item = nodes.definition_list_item("", nodes.term("", "", nodes.literal("", f"MPI.{name}")))
            definition = nodes.definition()
            for title, found in (("Simulated: ", _public(owner) - inherited), ("Refused: ", set(refused))):
                if found:
                    paragraph = _names(found)
                    paragraph.insert(0, nodes.emphasis("", title))
                    definition += paragraph
            item += definition
            listed += item
        item = nodes.definition_list_item("", nodes.term("", "", nodes.literal("", "MPI")))
        paragraph = _names({name for name in names.MODULE if not name.startswith("_")})
        paragraph.insert(0, nodes.emphasis("", "Refused: "))
        item += nodes.definition("", paragraph)
        listed += item
        return [listed]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("mpi-names", MpiNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
