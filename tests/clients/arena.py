"""Prepares a home and a project for one real client, configured by `handrail config`, and starts the client."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from clients.install import PLACE
from clients.screen import PATIENCE, Screen
from support.model_server import ModelServer

HANDRAIL = Path(sys.executable).parent
RECORDER = Path(__file__).resolve().parents[1] / "support" / "record_stdio.py"


class Arena:
    """Holds the directories of one test. A recorder stands before `handrail` on PATH."""

    def __init__(self, place: Path, server: ModelServer) -> None:
        self.place, self.server = place, server
        self.home, self.project, self.wire = place / "home", place / "project", place / "wire.jsonl"
        for each in (self.home, self.project, place / "bin"):
            each.mkdir()
        (self.project / "notes.txt").write_text("first line\n")
        wrapper = place / "bin" / "handrail"
        wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} {RECORDER} {self.wire} {HANDRAIL}/handrail "$@"\n')
        wrapper.chmod(0o755)
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{place}/bin:{PLACE}/node/bin:{PLACE}/node_modules/.bin:/usr/bin:/bin",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
        }

    def configure(self, client: str, *options: str) -> None:
        """Run `handrail config --write` as a user in the project does."""
        argv = [f"{HANDRAIL}/handrail", "config", client, "--write", "--unattended", *options]
        done = subprocess.run(argv, check=False, cwd=self.project, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def write(self, path: str, content: Any) -> None:
        """Write a file in the home: text, or a value as JSON."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))

    def screen(self, *argv: str) -> Screen:
        return Screen(self.place, [*argv], self.project, self.env)

    def run(self, *argv: str) -> str:
        """Run a client without a terminal; return what it printed."""
        done = subprocess.run(
            argv,
            check=False,
            cwd=self.project,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def until_listed(self) -> None:
        """Wait until the client has received the list of tools: some take a task before they have it."""
        end = time.monotonic() + PATIENCE
        while not (self.wire.is_file() and '"result": {' in self.wire.read_text().rpartition('"tools/list"')[2]):
            assert time.monotonic() < end, "the client did not ask for the tools"
            time.sleep(0.2)

    @property
    def results(self) -> list[str]:
        """The results of tools that the model has received, as the longest conversation has them."""
        return [*max((each.results for each in self.server.asked), key=len, default=[])]

    @property
    def offered(self) -> set[str]:
        """The names of all tools that the client offered to the model."""
        return {tool.whole for each in self.server.asked for tool in each.tools}


def prepare_codex(arena: Arena) -> None:
    trusted = json.dumps(os.path.realpath(arena.project))
    arena.write(
        ".codex/config.toml",
        f'model = "gpt-5.1-codex"\nmodel_provider = "scripted"\ncheck_for_update_on_startup = false\n\n'
        f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{arena.server.url}/v1"\nwire_api = "responses"\n\n'
        f'[projects.{trusted}]\ntrust_level = "trusted"\n',
    )


def prepare_claude(arena: Arena) -> None:
    trusted = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["handrail"]}
    arena.write(".claude.json", {"hasCompletedOnboarding": True, "projects": {str(arena.project): trusted}})
    arena.env |= {
        "ANTHROPIC_BASE_URL": arena.server.url,
        "ANTHROPIC_AUTH_TOKEN": "scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def prepare_gemini(arena: Arena) -> None:
    security = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    arena.write(".gemini/settings.json", {"security": security, "general": {"disableAutoUpdate": True}})
    arena.env |= {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": arena.server.url}


def prepare_opencode(arena: Arena) -> None:
    options = {"baseURL": f"{arena.server.url}/v1", "apiKey": "scripted"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {"name": "m"}}}
    chosen = {"model": "scripted/m", "small_model": "scripted/m", "autoupdate": False, "share": "disabled"}
    arena.write(".config/opencode/opencode.json", {"provider": {"scripted": provider}, **chosen})
    arena.env |= {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}


def prepare_qwen(arena: Arena) -> None:
    arena.env |= {"OPENAI_API_KEY": "scripted", "OPENAI_BASE_URL": f"{arena.server.url}/v1", "OPENAI_MODEL": "m"}
