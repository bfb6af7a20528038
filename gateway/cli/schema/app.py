"""The subcommands of `headgate schema`."""

import typer

from headgate.gateway.cli.schema import as_code, compatibility, settings, subjects, transfer

app = typer.Typer(
    help="Schemas: list, get, register, check, diff, plan, apply, delete, configure, copy.", no_args_is_help=True
)
app.command("list")(subjects.list_)
app.command("versions")(subjects.versions)
app.command("get")(subjects.get)
app.command("register")(compatibility.register)
app.command("check")(compatibility.check)
app.command("diff")(compatibility.diff)
app.command("plan")(as_code.plan)
app.command("apply")(as_code.apply)
app.command("delete")(subjects.delete)
app.command("config")(settings.config)
app.command("mode")(settings.mode)
app.command("export")(transfer.export_)
app.command("import")(transfer.import_)
