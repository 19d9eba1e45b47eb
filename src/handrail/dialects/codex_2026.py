"""Declares the `codex-2026` dialect: the tools that Codex CLI offers GPT-5 models now."""

import time
from typing import TYPE_CHECKING, Any, Literal

from handrail.dialects.output_types import ExecOutput, GrantedRights
from handrail.model.effects import Effect
from handrail.model.faults import (
    BadParameters,
    EmptyCommand,
    IsDirectory,
    NotFound,
    PatchTyped,
    Problem,
    SpecialFile,
    StaleFile,
)
from handrail.model.job_faults import JobEnded, NoKeyboard, RightsNotGranted, UnknownJob
from handrail.model.media_faults import NotAnImage
from handrail.model.rights import Rights
from handrail.ops.patch.grammar import GRAMMAR
from handrail.ops.text.display import without_escapes
from handrail.ops.text.token_budget import BYTES, token_count, within_tokens
from handrail.runtime.call import Call
from handrail.runtime.job_commands import JobOptions, JobRead
from handrail.runtime.more_rights import wanted_rights
from handrail.runtime.read_media import read_media
from handrail.tools.command_output import output_text
from handrail.tools.common_messages import STALE_BY_COMMAND
from handrail.tools.media_output import data_url
from handrail.tools.messages import Message
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect, Freeform, Output
from handrail.tools.warning_messages import notes_with_rights

if TYPE_CHECKING:
    from handrail.kernel.process.jobs import JobReading
    from handrail.ops.patch import PatchOutcome

_GONE = Message(
    "unknown_job",
    "write_stdin failed: Unknown process id {job}",
    "The session has ended, or never began: start a command with exec_command",
)
dialect = Dialect(
    "codex-2026",
    {
        **notes_with_rights("a call with additional_permissions asks them"),
        StaleFile: STALE_BY_COMMAND,
        PatchTyped: Message(
            "not_a_program",
            "apply_patch is not a program here; nothing was run. Call the tool apply_patch",
            "Call apply_patch with the text from *** Begin Patch to *** End Patch as its input",
        ),
        EmptyCommand: Message(
            "invalid_parameters", "missing command line for unified exec request", "Give the command in cmd"
        ),
        UnknownJob: _GONE,
        JobEnded: _GONE,
        NoKeyboard: Message(
            "no_terminal",
            "write_stdin failed: stdin is closed for this session; rerun exec_command with tty=true to keep stdin open",
            "Start the command again with tty=true, or poll without chars",
        ),
        ("view_image", NotFound): Message(
            "file_not_found", "unable to locate image at `{path}`: no such file", "Check the path of the image"
        ),
        ("view_image", IsDirectory): Message(
            "is_directory", "image path `{path}` is not a file", "Name an image in this directory"
        ),
        ("view_image", SpecialFile): Message(
            "not_a_file", "image path `{path}` is not a file", "Only regular files can be viewed"
        ),
    },
)
_INTERRUPT = "\x03"
_USUAL_TOKENS = 10_000
_SHELLS = ("bash", "sh", "dash", "zsh")
_PATCHING = Effect.READ | Effect.CREATE | Effect.WRITE | Effect.DELETE
_TOKENS = "Output token budget. Defaults to 10000 tokens; larger requests may be capped by policy."


class Codex2026Params(Params):
    """Makes schemas in the style of the reference: no integers, and no other properties."""

    @classmethod
    def schema(cls) -> dict[str, Any]:
        schema = super().schema()
        for each in schema["properties"].values():
            if each.get("type") == "integer":
                each["type"] = "number"
        return schema


class NetworkRights(Codex2026Params):
    enabled: bool | None = field("True requests network access; false or omitted requests none.", default=None)


class FileRights(Codex2026Params):
    read: list[str] | None = field("Absolute paths to grant read access; omit when none are needed.", default=None)
    write: list[str] | None = field("Absolute paths to grant write access; omit when none are needed.", default=None)


class AskedRights(Codex2026Params):
    network: NetworkRights | None = field("Network access request.", default=None)
    file_system: FileRights | None = field("Filesystem access request.", default=None)

    def wanted(self, c: Call) -> Rights:
        """Return what commands lack of these rights. Raises RightsNotGranted for what no question can grant."""
        files = self.file_system or FileRights(read=None, write=None)
        network = bool(self.network and self.network.enabled)
        return wanted_rights(c, network=network, read=files.read or (), write=files.write or ())


class ExecCommand(Codex2026Params):
    cmd: str = field("Shell command to execute.")
    workdir: str | None = field(
        "Working directory for the command. Defaults to the workspace root.", default=None, path=True
    )
    tty: bool | None = field("True allocates a PTY for the command; false or omitted uses plain pipes.", default=None)
    yield_time_ms: int | None = field(
        "Wait before yielding output. Defaults to 10000 ms; effective range is 250-30000 ms.", default=None
    )
    max_output_tokens: int | None = field(_TOKENS, default=None)
    shell: str | None = field("Shell to launch: bash (the default), sh, dash or zsh.", default=None)
    login: bool | None = field(
        "True runs the shell with -l semantics. Defaults to false: the sandbox has no profile of the user.",
        default=None,
    )
    sandbox_permissions: Literal["use_default", "with_additional_permissions", "require_escalated"] | None = field(
        "Per-command sandbox override. Defaults to `use_default`; use `with_additional_permissions` with "
        "`additional_permissions`, or `require_escalated` for unsandboxed execution.",
        default=None,
    )
    justification: str | None = field(
        "User-facing reason for the additional permissions of the command; omit otherwise.", default=None
    )
    prefix_rule: list[str] | None = field(
        'Reusable approval prefix for `cmd`, only with `sandbox_permissions: "require_escalated"`; for example '
        '["git", "pull"].',
        default=None,
    )
    additional_permissions: AskedRights | None = field(
        "Sandboxed filesystem or network access for this command; only with "
        '`sandbox_permissions: "with_additional_permissions"`.',
        default=None,
    )


@dialect.tool("exec_command", Effect.RUN)
def exec_command(p: ExecCommand, c: Call) -> ExecOutput:
    """Run a command in a PTY, returning output or a session ID for ongoing interaction."""
    if p.sandbox_permissions == "require_escalated" and c.session.services.powers.sandbox != "off":
        raise RightsNotGranted(["a command without the sandbox"])
    rights, c.session.next_rights = c.session.next_rights, Rights()
    if p.sandbox_permissions == "with_additional_permissions" and p.additional_permissions:
        rights = p.additional_permissions.wanted(c)
    options = JobOptions(terminal=bool(p.tty), program=(_shell(p.shell) or c.session.shell, "-lc" if p.login else "-c"))
    wait = _between(10_000 if p.yield_time_ms is None else p.yield_time_ms, 250, 30_000)
    began = time.monotonic()
    read = c.jobs.start(
        p.cmd,
        wait_seconds=wait / 1000,
        directory=p.workdir or ".",
        options=options,
        justification=p.justification or "",
        rights=rights,
    )
    return _shown(c, read, began, p.max_output_tokens)


class WriteStdin(Codex2026Params):
    session_id: int = field("Identifier of the running unified exec session.")
    chars: str | None = field(
        "Bytes to write to stdin. Defaults to empty, which polls without writing.", default=None, any_text=True
    )
    yield_time_ms: int | None = field(
        "Wait before yielding output. Non-empty writes default to 250 ms and cap at 30000 ms; empty polls wait "
        "5000-300000 ms by default.",
        default=None,
    )
    max_output_tokens: int | None = field(_TOKENS, default=None)


@dialect.tool("write_stdin", Effect.RUN)
def write_stdin(p: WriteStdin, c: Call) -> ExecOutput:
    """Write characters to an existing unified exec session and return recent output."""
    began, job = time.monotonic(), str(p.session_id)
    asked = 250 if p.yield_time_ms is None else p.yield_time_ms
    if not p.chars:
        read = c.jobs.read(job, _between(asked, 5000, 300_000) / 1000)
    elif p.chars == _INTERRUPT and not c.jobs.has_terminal(job):
        read = c.jobs.stop(job)
    else:
        read = c.jobs.type(job, p.chars, _between(asked, 250, 30_000) / 1000)
    return _shown(c, read, began, p.max_output_tokens)


class ApplyPatch(Codex2026Params):
    input: str = field("The patch, from *** Begin Patch to *** End Patch.", body=True)


_PATCH = Freeform(
    "input",
    "The `apply_patch` tool can be used to edit files. This is a FREEFORM tool, so do not wrap the patch in JSON.",
    GRAMMAR,
)


@dialect.tool("apply_patch", _PATCHING, freeform=_PATCH)
def apply_patch(p: ApplyPatch, c: Call) -> str:
    """Edit files by one patch in the apply_patch format, all of it or none."""
    lines = [_patched(outcome) for outcome in c.files.apply_patch(p.input) if not outcome.moved_to]
    return "".join(f"{line}\n" for line in ("Success. Updated the following files:", *sorted(lines)))


def _patched(outcome: "PatchOutcome") -> str:
    return f"{'D' if outcome.deleted else 'A' if outcome.created and not outcome.moved_from else 'M'} {outcome.path}"


class ViewImage(Codex2026Params):
    path: str = field("Local filesystem path to an image file.", path=True)
    detail: Literal["high", "original"] | None = field(
        "Image detail level. Defaults to `high`; use `original` to preserve exact resolution.", default=None
    )


@dialect.tool("view_image", Effect.READ)
def view_image(p: ViewImage, c: Call) -> Output:
    """View a local image file from the filesystem when visual inspection is needed."""
    detail = p.detail or "high"
    media = read_media(c, p.path, scale=detail == "high")
    if media is None or not media.mime.startswith("image/"):
        raise NotAnImage(p.path)
    return {"image_url": data_url(media), "detail": detail}


class RequestPermissions(Codex2026Params):
    permissions: AskedRights = field("Filesystem or network access request.")
    reason: str | None = field("Optional short explanation for why additional permissions are needed.", default=None)


@dialect.tool("request_permissions", Effect.RUN)
def request_permissions(p: RequestPermissions, c: Call) -> GrantedRights:
    """Request additional filesystem or network permissions from the user, for the next command."""
    asked = c.params["permissions"]
    if not any(asked.get(name) for name in ("network", "file_system")):
        raise BadParameters([Problem("permissions", "missing", "at least one permission")])
    rights = p.permissions.wanted(c)
    level = c.session.next_level()
    verdict = c.ask(Effect.RUN, justification=p.reason or "", sandbox=level, rights=rights, targets=rights.guarded)
    c.session.next_rights = rights if verdict.rights is None else verdict.rights
    return {"permissions": asked, "scope": "turn" if rights else "session"}


def _shown(c: Call, read: JobRead, began: float, asked: int | None) -> ExecOutput:
    """Return what a job printed, within the tokens that the call asks for, or else the budget of every answer."""
    reading: JobReading = read.reading
    usual = c.session.services.powers.answer_tokens or _USUAL_TOKENS
    budget = max(0, usual if asked is None else asked)
    text = without_escapes(output_text("stdout", reading.stdout)).replace("\r\n", "\n")
    tokens = token_count(reading.stdout.total_bytes)
    shown: ExecOutput = {
        "wall_time_seconds": round(time.monotonic() - began - c.waited, 4),
        "output": within_tokens(text, budget, tokens),
        "original_token_count": tokens,
    }
    if shown["output"] != text or reading.stdout.cut_bytes:
        kept = reading.stdout.total_bytes - reading.stdout.cut_bytes
        c.commands.note_cut(reading.stdout, min(kept, budget * BYTES))
    if read.running:
        return {**shown, "session_id": int(read.job)}
    return {**shown, "exit_code": reading.returncode}


def _shell(name: str | None) -> str:
    """Return the shell to start; empty for the usual one. A rule reads `cmd` as shell text: only shells may run it."""
    if name is None:
        return ""
    directory, _, last = name.rpartition("/")
    if last not in _SHELLS or directory not in ("", "/bin", "/usr/bin", "/usr/local/bin"):
        raise BadParameters([Problem("shell", "choice", ", ".join(_SHELLS), name)])
    return f"/bin/{last}" if not directory else name


def _between(value: int, least: int, most: int) -> int:
    return max(least, min(value, most))
