"""How the documentation is built: strictly, and into pages that load nothing from elsewhere."""

import re
from collections.abc import Iterator
from importlib.metadata import version as version_of
from pathlib import Path

from click import Command, Context, Group, Option
from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

import superarm
from superarm.cli import main

project = "superarm"
author = "superarm contributors"
copyright = "2026, superarm contributors"
version = release = version_of("superarm")

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Docstrings: numpydoc; types stand in the signatures, from the annotations, and only there.
default_role = "py:obj"
add_module_names = False
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
maximum_signature_line_length = 88
numpydoc_show_class_members = False
python_use_unqualified_type_names = True

# Every reference must lead somewhere, except: text between backticks in a docstring that is no full
# name, as it may be a parameter or a piece of code; types of other libraries, whose inventories lie
# elsewhere; and types that are not public (the public ones are found under both of their names).
nitpicky = True
nitpick_ignore_regex = [
    (r"py:obj", r"(?!superarm(\.\w+)+$).*"),
    (
        r"py:.*",
        r"(click|collections|datetime|matplotlib|np|numpy|pathlib|scipy|sqlalchemy|threading|types"
        r"|typing)\..*",
    ),
    (r"py:class", r"superarm\.[a-z_]+\..*|[^.]*"),
]

html_theme = "pydata_sphinx_theme"
html_title = f"superarm {release}"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

logger = logging.getLogger(__name__)

# The converter sets the index of an accented letter below the letter, not beside it; with an empty
# group after the letter it does not.
ACCENTED = re.compile(r"(\\(?:bar|hat|tilde) ?(?:\\[a-z]+|[A-Za-z]|\{[^{}]*\}))_")


def mathml(self: HTML5Translator, node: nodes.math | nodes.math_block, *, block: bool) -> str:
    """Formula as MathML, which browsers draw by themselves; warn of one that cannot be read."""
    latex = node.astext()
    try:
        return tex2mathml(ACCENTED.sub(r"{\1{}}_", latex), as_block=block)
    except MathError as error:
        logger.warning("formula %r: %s", latex, error, location=node)
        return f"<code>{self.encode(latex)}</code>"


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(mathml(self, node, block=False))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula of its own, with its number where it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(mathml(self, node, block=True) + "</div>\n")
    raise nodes.SkipNode


def check_public_names(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of every public name that the reference forgets."""
    documented = env.domains.python_domain.objects
    for name in superarm.__all__:
        if f"superarm.{name}" not in documented:
            logger.warning("superarm.%s is public, but reference/api.md does not list it", name)


def commands(name: str, group: Group) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield every command below a group, by the words that call it."""
    for word, command in group.commands.items():
        if isinstance(command, Group):
            for path, inner in commands(word, command):
                yield (name, *path), inner
        else:
            yield (name, word), command


def check_options(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of every option of a command that the reference forgets, or that there is no more."""
    described = set(env.domains.standard_domain.progoptions)
    existing = {
        ("-".join(path), flag)
        for path, command in commands("superarm", main)
        for parameter in command.get_params(Context(command))
        if isinstance(parameter, Option)
        for flag in parameter.opts
    }
    for program, option in sorted(existing ^ described):
        state = "is not in" if (program, option) in existing else "is only in"
        logger.warning("%s %s %s reference/cli.md", program, option, state)


OUTSIDE = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b(?![^>]*\brel=["']?(?:canonical|license|author))[^>]*\bhref=["']?(?:https?:)?//[^>]*>"""
)


def check_outside(app: Sphinx, error: Exception | None) -> None:
    """Warn of every page that would load something from another machine."""
    if error is None and app.builder.format == "html":
        for page in sorted(Path(app.outdir).rglob("*.html")):
            for tag in OUTSIDE.findall(page.read_text(encoding="utf-8")):
                logger.warning("%s loads from outside: %s", page.relative_to(app.outdir), tag)


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("env-check-consistency", check_public_names)
    app.connect("env-check-consistency", check_options)
    app.connect("build-finished", check_outside)
