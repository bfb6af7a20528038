"""Where the documents of our HTTP APIs lie."""

from importlib.resources import files


def document(name: str) -> str:
    """The text of an OpenAPI document, e.g. of "registry"."""
    return files("headgate.openapi").joinpath(f"{name}.yaml").read_text("utf-8")
