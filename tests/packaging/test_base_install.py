"""The wheel without extras: commands and Avro, and a clear error for everything else."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.packaging.environment import Environment, base_dependencies

SERVER_LIBRARIES = {"fastapi", "starlette", "uvicorn", "uvloop", "sqlite-utils", "websockets"}
OTHER_EXTRAS = {"jsonschema", "jsonschema-rs", "protobuf", "pyspark", "numpy", "pyarrow"}

AVRO_WITHOUT_A_REGISTRY = """
import json
from headgate.registry.model import SchemaType
from headgate.serdes.codec import ReadOptions, WriteOptions
from headgate.serdes.codecs import WholeSchema, reader_of, writer_of
from headgate.serdes.framing import Frame
from headgate.serdes.schemas import SchemaDefinition

def schema(kind, text):
    return WholeSchema(SchemaDefinition(kind, text))

order = schema(SchemaType.AVRO, '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}')
body = writer_of(order, WriteOptions()).write({"id": 7}).content
found = [body.hex()]
for kind, text in ((SchemaType.JSON, "{}"), (SchemaType.PROTOBUF, 'syntax = "proto3"; message M {}')):
    try:
        writer_of(schema(kind, text), WriteOptions())
    except ImportError as error:
        found.append(str(error).partition("; ")[2])
print(json.dumps(found))
"""


def test_the_base_install_has_no_server_and_no_other_extra() -> None:
    assert base_dependencies() & (SERVER_LIBRARIES | OTHER_EXTRAS) == set()


def test_the_command_works_and_explains_what_up_needs(base_environment: Environment, tmp_path: Path) -> None:
    command = base_environment.folder / "bin" / "headgate"
    assert "consume" in base_environment.run(command, "--help", cwd=tmp_path)
    done = subprocess.run([str(command), "up"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'headgate[server]'" in done.stderr
    assert not (tmp_path / ".headgate").exists()


def test_avro_needs_no_extra_and_other_languages_name_theirs(base_environment: Environment, tmp_path: Path) -> None:
    printed = base_environment.run(base_environment.python, "-c", AVRO_WITHOUT_A_REGISTRY, cwd=tmp_path)
    assert json.loads(printed) == ["0e", "run pip install 'headgate[json]'", "run pip install 'headgate[protobuf]'"]


def test_schemas_are_checked_against_git_and_other_languages_name_their_extra(
    base_environment: Environment, tmp_path: Path
) -> None:
    def check(name: str, text: str) -> "subprocess.CompletedProcess[str]":
        (tmp_path / name).write_text(text)
        (tmp_path / "schemas.toml").write_text(f"[subjects.a]\nfile = '{name}'\n")
        command = [str(base_environment.folder / "bin" / "headgate"), "schema", "check", "--against", "git:HEAD"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    done = check("a.avsc", '"string"')
    assert (done.returncode, "new subject" in done.stdout) == (0, True), done.stderr
    for name, text, extra in (("a.json", "{}", "json"), ("a.proto", "message A {}", "protobuf")):
        done = check(name, text)
        assert (done.returncode, f"run pip install 'headgate[{extra}]'" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("command", ["topic", "consume", "schema"])
def test_commands_reach_their_server_without_an_extra(
    base_environment: Environment, tmp_path: Path, command: str
) -> None:
    """No server listens on port 1, so each command ends with its own error, not with a missing library."""
    word = "t" if command == "consume" else "list"
    options = ["--registry", "http://127.0.0.1:1"] if command == "schema" else ["-b", "127.0.0.1:1"]
    done = subprocess.run(
        [base_environment.folder / "bin" / "headgate", command, word, *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 4, done.stderr
    assert "127.0.0.1:1" in done.stderr
