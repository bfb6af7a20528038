import pytest

from headgate.gateway.cli.confirmation import confirm
from headgate.gateway.cli.errors import UsageError
from headgate.gateway.cli.output import Progress, print_json, print_table, size_text


def test_a_piped_table_is_aligned_and_has_no_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME", "N", "NOTE"], [["long name", 5, ""], ["x", None, "[b]"]], numbers=["N"])
    assert capsys.readouterr().out == "NAME       N  NOTE\nlong name  5\nx          -  [b]\n"


def test_a_table_on_a_terminal_shows_names_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(["NAME"], [["[bold]x[/bold]"]])
    assert "[bold]x[/bold]" in capsys.readouterr().out


def test_json_keeps_letters_beyond_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "größe"})
    assert capsys.readouterr().out == '{"name": "größe"}\n'


@pytest.mark.parametrize(
    ("size", "text"), [(None, None), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 1024**5, "5120.0 TiB")]
)
def test_sizes_are_for_eyes(size: int | None, text: str | None) -> None:
    assert size_text(size) == text


def test_progress_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("records") as progress:
        progress.update(1)
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_has_a_bar_if_the_total_is_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("headgate.gateway.cli.output.progress_delay_seconds", 0.0)
    with Progress("bytes sent", 2000) as progress:
        progress.update(1000)
    with Progress("records") as progress:
        progress.update(7)
    shown = capsys.readouterr().err
    assert "[##########          ]  50% 1,000 bytes sent" in shown
    assert "\x1b[K7 records" in shown


@pytest.mark.parametrize(("answer", "expected"), [("y\n", True), ("YES\n", True), ("\n", False), ("no\n", False)])
def test_a_person_is_asked_and_silence_is_no(
    answer: str, expected: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: answer, raising=False)
    assert confirm("sure?", yes=False) is expected
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "sure? [y/N] ")


def test_without_a_person_yes_must_have_been_given() -> None:
    assert confirm("sure?", yes=True)
    with pytest.raises(UsageError, match="not a terminal"):
        confirm("sure?", yes=False)
