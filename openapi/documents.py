"""OpenAPI documents of the HTTP APIs."""

from importlib.resources import files


def document(name: str) -> str:
    """The text of an OpenAPI document, such as "registry"."""
    return files("headgate.openapi").joinpath(f"{name}.yaml").read_text("utf-8")
