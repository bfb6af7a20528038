"""Lines of product code per package in two revisions: `python -m tests.code_size BASE [REVISION]`.

`code` excludes blank lines, comments and docstrings.
"""

import argparse
import ast
import io
import subprocess
import tarfile
import tokenize
from collections import Counter

from tests.layers import PACKAGES

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


def sizes(revision: str) -> tuple[Counter[str], Counter[str]]:
    """Lines and lines of code by package."""
    archive = subprocess.run(["git", "archive", "--format=tar", revision], capture_output=True, check=True).stdout
    lines, code = Counter[str](), Counter[str]()
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            package = member.name.partition("/")[0]
            if package in PACKAGES and member.isfile() and member.name.endswith(".py"):
                text = files.extractfile(member).read().decode()  # type: ignore[union-attr]  # a regular file
                lines[package] += text.count("\n")
                code[package] += code_lines(text)
    return lines, code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base")
    parser.add_argument("revision", nargs="?", default="HEAD")
    arguments = parser.parse_args()
    before, after = sizes(arguments.base), sizes(arguments.revision)
    print("| package | lines before | after | code before | after |\n|---|---|---|---|---|")
    columns = (before[0], after[0], before[1], after[1])
    for package in sorted(PACKAGES):
        print(f"| {package} | {' | '.join(str(column[package]) for column in columns)} |")
    print(f"| total | {' | '.join(str(column.total()) for column in columns)} |")


if __name__ == "__main__":
    main()
