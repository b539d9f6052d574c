"""The ways in: the installed command, `python -m clickbridge`, and what a shell asks for when Tab is pressed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clickbridge import __version__

MODULE = [sys.executable, "-m", "clickbridge"]


def completions(shell: str, line: str) -> set[str]:
    """What a shell is offered at the end of a line."""
    words = line.split(" ")
    asked = {
        "_CLICKBRIDGE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    program = "import sys; sys.argv = ['clickbridge']; from clickbridge.cli.main import main; main()"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **asked})
    assert said.stderr == ""
    return set(said.stdout.split())


def test_the_module_is_the_command() -> None:
    said = subprocess.run([*MODULE, "--version"], capture_output=True, text=True)
    assert (said.returncode, said.stdout, said.stderr) == (0, f"{__version__}\n", "")


def test_the_module_refuses_as_the_command_does() -> None:
    said = subprocess.run([*MODULE, "stats", "nowhere"], capture_output=True, text=True)
    assert said.returncode == 1
    assert said.stderr.startswith("clickbridge: ")
    assert len(said.stderr.splitlines()) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_verbs_and_options(shell: str) -> None:
    verbs = completions(shell, "clickbridge s")
    assert any("search" in word for word in verbs)
    assert not any("ingest" in word for word in verbs)
    assert any("--model" in word for word in completions(shell, "clickbridge fit --mo"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_names_the_command(shell: str) -> None:
    # Typer would look for the shell that it was started from, and there may be none.
    named = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    said = subprocess.run([*MODULE, "--show-completion", shell], capture_output=True, text=True, env=named)
    assert said.returncode == 0
    assert "clickbridge" in said.stdout


@pytest.mark.parametrize("where", ["typer", "rich.console", "clickbridge.cli.update"])
def test_ctrl_c_while_the_libraries_load_ends_as_at_any_other_time(where: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "class Stop:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {where!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stop())\n"
    )
    source = str(Path(sys.modules["clickbridge"].__file__ or "").parents[1])
    found = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{source}"}
    said = subprocess.run([*MODULE, "models"], capture_output=True, text=True, env=found)
    assert (said.returncode, said.stdout) == (130, "")
    assert said.stderr == "clickbridge: interrupted; nothing was left half-written\n"


def test_ctrl_c_inside_exec_ends_with_the_exit_code() -> None:
    """Dataclasses make their methods by exec, in modules that verbs load later; Python would end by the signal."""
    program = (
        "import sys; from clickbridge.cli import app, main\n"
        "app.app = lambda: exec('raise KeyboardInterrupt')\n"
        "main.main()"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (130, "clickbridge: interrupted; nothing was left half-written\n")
