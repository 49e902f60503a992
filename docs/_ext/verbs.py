"""The reference of the command line and of the Python verbs, made from the program itself.

``{command-line}`` lists every verb of ``wiretwin`` with its help, arguments and options;
``{python-verbs}`` every public name of the package with its signature and documentation. Neither can
fall behind the code.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from folded import fold
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def _section(name: str, *content: nodes.Node) -> nodes.section:
    section = nodes.section(ids=[nodes.make_id(name)], names=[nodes.fully_normalize_name(name)])
    section += nodes.title("", "", nodes.literal("", name))
    section += content
    return section


def _paragraphs(text: str) -> Iterator[nodes.Node]:
    """Yield the paragraphs of a verb's help; one that begins with a backspace keeps its lines."""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        first, _, rest = block.partition("\n")
        if first.strip() == "\b":
            yield nodes.literal_block(rest, rest, language="text")
        elif block.strip():
            yield nodes.paragraph("", " ".join(block.split()))


def _parameter(parameter: Any, context: typer.Context) -> nodes.definition_list_item | None:
    record = parameter.get_help_record(context)
    if record is None or parameter.name == "help":
        return None
    written, explained = record
    item = nodes.definition_list_item("", nodes.term("", "", nodes.literal("", written)))
    item += nodes.definition("", nodes.paragraph("", " ".join(explained.split())))
    return item


def _verb(name: str, command: Any) -> nodes.section:
    context = typer.Context(command, info_name=f"wiretwin {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    shown = f"wiretwin {name} {usage}"
    section = _section(f"wiretwin {name}")
    content: list[nodes.Node] = [nodes.literal_block(shown, shown, language="text")]
    content += list(_paragraphs(command.help or ""))
    listed = nodes.definition_list()
    listed += [item for one in command.get_params(context) if (item := _parameter(one, context))]
    summary = command.get_short_help_str(90)
    section += fold(summary, *content, listed)
    section += [_verb(f"{name} {word}", inner) for word, inner in getattr(command, "commands", {}).items()]
    return section


class CommandLine(SphinxDirective):
    """Every verb of the command line."""

    def run(self) -> list[nodes.Node]:
        """Make the sections, anew in every build."""
        self.env.note_reread()
        from wiretwin.cli.app import _build

        application: Any = typer.main.get_command(_build())
        return [_verb(name, command) for name, command in application.commands.items()]


def _signature(name: str, value: Any) -> str:
    """Return the signature as it is written, one parameter a line if it is long."""

    def written(kind: Any) -> str:
        return kind if isinstance(kind, str) else inspect.formatannotation(kind)

    parts, keywords = [], False
    signature = inspect.signature(value)
    for one in signature.parameters.values():
        if one.name == "self":
            continue
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not keywords:
            keywords = True
            parts.append("*")
        typed = f"{one.name}: {written(one.annotation)}" if one.annotation is not one.empty else one.name
        parts.append(typed if one.default is one.empty else f"{typed} = {one.default!r}")
    returned = signature.return_annotation
    end = f") -> {written(returned)}" if returned is not signature.empty else ")"
    line = f"{name}({', '.join(parts)}{end}"
    if len(line) <= 90:
        return line
    return "".join([f"{name}(\n", *(f"    {part},\n" for part in parts), end])


def _documented(name: str, value: Any) -> nodes.section:
    docs = inspect.cleandoc(inspect.getdoc(value) or "")
    section = _section(f"wiretwin.{name}")
    content: list[nodes.Node] = []
    if inspect.isclass(value):
        content.append(nodes.literal_block(docs, docs, language="text"))
        methods = [
            (method, getattr(value, method))
            for method, found in vars(value).items()
            if not method.startswith("_") and (inspect.isfunction(found) or isinstance(found, classmethod))
        ]
        for method, function in methods:
            shown = _signature(f"{value.__name__}.{method}", function)
            said = inspect.cleandoc(inspect.getdoc(function) or "").split("\n\n")[0]
            content.append(nodes.literal_block(shown, shown, language="python"))
            content.append(nodes.paragraph("", " ".join(said.split())))
    else:
        shown = _signature(name, value)
        content.append(nodes.literal_block(shown, shown, language="python"))
        content.append(nodes.literal_block(docs, docs, language="text"))
    section += fold(docs.partition("\n")[0], *content)
    return section


class PythonVerbs(SphinxDirective):
    """Every public name of the package."""

    def run(self) -> list[nodes.Node]:
        """Make the sections, anew in every build."""
        self.env.note_reread()
        package = importlib.import_module("wiretwin")
        sections = []
        for name in sorted(package.__all__):
            value = getattr(package, name)
            if name == "__version__":
                continue
            if not inspect.ismodule(value):
                sections.append(_documented(name, value))
            elif callable(value):
                module, _, function = type(value).__dict__["__verb__"].partition(":")
                sections.append(_documented(name, getattr(importlib.import_module(module), function)))
            else:
                inside = [(f"{name}.{one}", getattr(value, one)) for one in value.__all__]
                sections += [_documented(one, found) for one, found in inside if inspect.isroutine(found)]
        return sections


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the two directives."""
    app.add_directive("command-line", CommandLine)
    app.add_directive("python-verbs", PythonVerbs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
