"""The agents: how each is started against the scripted model, and what it wants in its home."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from interlock.model.records import dataclass

MODEL = "http://127.0.0.1:8911"
_KEY = "sk-of-the-script"


@dataclass
class Agent:
    """An agent as a user would start it.

    Takes: `command`, in which `{task}` stands for the task and `{home}` for the home; `environment`, what the user has
    set; `files`, what lies in the home, by path; `ending`, the steps by which it is told that all is done; `options`,
    what `interlock run` is given besides; `calm` and `calm_files`, the environment and the files by which it is kept from
    asking the internet for anything (for the runs that are timed); `loose`, globs of workspace paths whose bytes differ from run to run;
    `hands`, how its model acts: "tools", "shell" (that alone) or "text".
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    ending: tuple[Mapping[str, Any], ...] = ()
    options: tuple[str, ...] = ()
    calm: Mapping[str, str] = field(default_factory=dict)
    calm_files: Mapping[str, str] = field(default_factory=dict)
    loose: tuple[str, ...] = ()
    hands: str = "tools"

    def calmed(self) -> Agent:
        """Return the agent with what keeps it from asking the internet for anything."""
        return replace(
            self,
            environment={**self.environment, **self.calm},
            files={**self.files, **self.calm_files},
        )


_OPENAI = {"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": f"{MODEL}/v1"}

_CODEX = """\
model = "gpt-5.5"
model_provider = "script"
[model_providers.script]
name = "script"
base_url = "http://127.0.0.1:8911/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""

_OPENCODE = {
    "$schema": "https://opencode.ai/config.json",
    "model": "script/fake-model",
    "small_model": "script/fake-model",
    "autoupdate": False,
    "provider": {
        "script": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "script",
            "options": {"baseURL": f"{MODEL}/v1", "apiKey": "{env:OPENAI_API_KEY}"},
            "models": {"fake-model": {"name": "script", "tool_call": True}},
        }
    },
}

_PI = {
    "providers": {
        "script": {
            "baseUrl": f"{MODEL}/v1",
            "api": "openai-completions",
            "apiKey": "OPENAI_API_KEY",
            "models": [
                {
                    "id": "fake-model",
                    "name": "script",
                    "reasoning": False,
                    "input": ["text"],
                    "contextWindow": 128000,
                    "maxTokens": 4096,
                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                }
            ],
        }
    }
}

_LLM_MODELS = """\
- model_id: fake-model
  model_name: fake-model
  api_base: "http://127.0.0.1:8911/v1"
  supports_tools: true
  api_key_name: openai
"""

_LLM_TOOLS = '''\
import subprocess


def read_file(path: str) -> str:
    """Read a file."""
    with open(path) as file:
        return file.read()


def write_file(path: str, content: str) -> str:
    """Write a file."""
    with open(path, "w") as file:
        file.write(content)
    return "written"


def run_command(command: str) -> str:
    """Run a shell command."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout + done.stderr
'''

_SMOLAGENTS = '''\
import os
import subprocess
import sys

from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: where it is
    """
    with open(path) as file:
        return file.read()


@tool
def write_file(path: str, content: str) -> str:
    """Write a file.

    Args:
        path: where it shall be
        content: what it shall hold
    """
    with open(path, "w") as file:
        file.write(content)
    return "written"


@tool
def run_command(command: str) -> str:
    """Run a shell command.

    Args:
        command: the command
    """
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout + done.stderr


model = OpenAIServerModel("fake-model", os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
print(ToolCallingAgent([read_file, write_file, run_command], model).run(sys.argv[1]))
'''

AGENTS = (
    Agent(
        "claude",
        ("claude", "-p", "{task}", "--dangerously-skip-permissions", "--output-format", "json"),
        # IS_SANDBOX is for the run without Interlock: as root it refuses this option otherwise.
        {"ANTHROPIC_BASE_URL": MODEL, "ANTHROPIC_API_KEY": _KEY, "IS_SANDBOX": "1"},
        calm={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    ),
    Agent(
        "codex",
        (
            "codex", "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
            "{task}",
        ),
        _OPENAI,
        {".codex/config.toml": _CODEX},
        calm_files={
            ".codex/config.toml": _CODEX
            + "[analytics]\nenabled = false\n[features]\nplugins = false\napps = false\n"
        },
    ),
    Agent(
        "opencode",
        ("opencode", "run", "-m", "script/fake-model", "{task}"),
        _OPENAI,
        {".config/opencode/opencode.json": json.dumps(_OPENCODE)},
        calm={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        loose=(".git/opencode",),
    ),
    Agent(
        "pi",
        ("pi", "-p", "--provider", "script", "--model", "fake-model", "{task}"),
        _OPENAI,
        {".pi/agent/models.json": json.dumps(_PI), ".pi/agent/auth.json": "{}"},
    ),
    Agent(
        "gemini",
        ("gemini", "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "{task}"),
        {"GEMINI_API_KEY": _KEY, "GOOGLE_GEMINI_BASE_URL": MODEL, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        {".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'},
        calm_files={
            ".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}, '
            '"privacy": {"usageStatisticsEnabled": false}}'
        },
    ),
    Agent(
        "qwen",
        ("qwen", "--yolo", "-p", "{task}"),
        {**_OPENAI, "OPENAI_MODEL": "fake-model"},
        {
            ".qwen/settings.json": '{"security": {"auth": {"selectedType": "openai"}}, "$version": 4}',
            ".qwen/output-language.md": "# Output language: English\n",
        },
        calm_files={
            ".qwen/settings.json": '{"$version": 4, "security": {"auth": {"selectedType": "openai"}}, '
            '"privacy": {"usageStatisticsEnabled": false}}'
        },
    ),
    Agent(
        "mini",
        ("mini", "-m", "openai/fake-model", "-t", "{task}", "-y", "--exit-immediately", "-o", "{home}/traj.json"),
        {
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "OPENAI_API_KEY": _KEY,
            "OPENAI_API_BASE": f"{MODEL}/v1",
        },
        calm={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        ending=({"shell": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}, {"say": "Done."}),
        hands="shell",
    ),
    Agent(
        "aider",
        (
            "aider", "--model", "openai/fake-model", "--edit-format", "whole", "--yes-always", "--no-stream",
            "--no-detect-urls", "--disable-playwright", "--auto-test", "--test-cmd", "sh check.sh", "--message", "{task}",
            "README.md", "notes.txt", "check.sh",
        ),
        {"OPENAI_API_KEY": _KEY, "OPENAI_API_BASE": f"{MODEL}/v1"},
        calm={
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "AIDER_CHECK_UPDATE": "false",
            "AIDER_ANALYTICS_DISABLE": "true",
        },
        loose=(".aider*",),
        hands="text",
    ),
    Agent(
        "llm",
        ("llm", "-m", "fake-model", "--chain-limit", "20", "--functions", "{home}/tools/for_llm.py", "{task}"),
        _OPENAI,
        {
            ".config/io.datasette.llm/extra-openai-models.yaml": _LLM_MODELS,
            "tools/for_llm.py": _LLM_TOOLS,
        },
    ),
    Agent(
        "smolagents",
        ("python", "{home}/tools/agent.py", "{task}"),
        _OPENAI,
        {"tools/agent.py": _SMOLAGENTS},
        ending=({"tool": "final_answer", "arguments": {"answer": "Done."}}, {"say": "Done."}),
        options=("--profile", "smolagents"),
    ),
)  # fmt: skip
"""Every agent, in the order of the table."""
