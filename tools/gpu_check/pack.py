"""Makes the folder that a machine with a GPU needs and nothing else: programs, their shared libraries, small checkpoints
with the logits that are expected of them, and the steps themselves."""

import json
import lzma
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import checkpoints
import logits

MOST_BYTES = 60_000_000
PROGRAMS = ("weft", "weft_device_check", "libweft.so")
TARGETS = ("weft", "weft_device_check", "weft_shared", "check_launches")
# A device of one major number refuses machine code of another: code for one architecture alone, as faults want it.
FOREIGN_ARCHITECTURES = (80, 120)
# The dictionary holds all programs.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 4, "dict_size": 64 << 20}]
# Of every Linux with a C++ compiler's runtime; what else the programs are linked to goes along.
OF_THE_SYSTEM = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so",
                 "libstdc++.so", "libgcc_s.so")


class PackError(Exception):
    pass


def command(words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise PackError(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def build_for_gpus(root):
    """A build of its own with device code. What it needs is installed and fetched as for any other."""
    folder = root / "build" / "gpu"
    for words in (["tools/setup.sh", "test"], [sys.executable, "-I", "tools/fetch_nvcc.py"],
                  ["cmake", "--preset", "release", "-B", folder, "-DWEFT_CUDA=ON"],
                  ["ninja", "-C", folder, *TARGETS]):
        if subprocess.run(list(map(str, words)), cwd=root, stdout=sys.stderr).returncode != 0:
            raise PackError(f"{' '.join(map(str, words))} failed")
    return folder


def nvcc_of(build):
    """The one that made the build's device code; None where the build has none."""
    lines = dict(line.split("=", 1) for line in (build / "CMakeCache.txt").read_text().splitlines() if "=" in line)
    return lines.get("WEFT_NVCC:FILEPATH") if lines.get("WEFT_CUDA:BOOL") == "ON" else None


def shared_libraries(program):
    """Paths of those that are not of every system, by the names that the program asks for."""
    found = {}
    for line in command(["ldd", program]).splitlines():
        name, _, place = line.strip().partition(" => ")
        if place.startswith("not found"):
            raise PackError(f"{program} needs {name}, which is not found")
        if place and not name.startswith(OF_THE_SYSTEM):
            found[name] = place.split(" (")[0]
    return found


def pack_programs(build, root, target):
    """One archive: the programs have much in common, which compresses only together."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        libraries = {}
        for name in PROGRAMS:
            command(["strip", "-o", scratch / name, (build / name).resolve()])
            libraries |= shared_libraries(build / name)
        for name, place in libraries.items():
            shutil.copyfile(place, scratch / name)
            (scratch / name).chmod(0o755)
        command([build / "check_launches", "tests/data/ops", scratch / "launches.bin"], cwd=root)
        if nvcc := nvcc_of(build):
            for architecture in FOREIGN_ARCHITECTURES:
                command(["tools/device_code.sh", "compile-only", nvcc,
                         "src/kernels/cuda/device/per_token_group_quant.cu",
                         scratch / f"only_sm_{architecture}.fatbin", architecture], cwd=root)
        with lzma.open(target, "wb", filters=FILTERS) as file, tarfile.open(fileobj=file, mode="w") as archive:
            for one in sorted(scratch.iterdir()):
                archive.add(one, one.name)


def quantize(weft, plain, form, folder):
    more = []
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as text:
        if form == "nvfp4":  # its scales of inputs come from a text
            text.write(checkpoints.PROMPT * checkpoints.ROWS_OF_CALIBRATION)
            text.flush()
            more = ["--calibrate", text.name]
        command([weft, "quantize", plain, *checkpoints.FORMATS[form], *more, "-o", folder])


def pack_models(weft, folder):
    """Each checkpoint in each of its formats, and what the host's processor and the emulated device compute of it."""
    expected = {}
    for seed, (name, (architecture, widths, forms)) in enumerate(checkpoints.CHECKPOINTS.items()):
        plain = folder / f"{name}-bf16"
        checkpoints.write_checkpoint(plain, architecture, widths, seed)
        for form in forms:
            model = folder / f"{name}-{form}"
            if form != "bf16":
                quantize(weft, plain, form, model)
            expected[model.name] = {device: logits.compute(weft, model, device) for device in ("cpu", "fake-cuda")}
    (folder / "expected.json").write_text(json.dumps(expected))


def folder_bytes(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def pack(folder, build, root):
    try:
        if folder.exists() and any(folder.iterdir()) and not (folder / "gpu_check.sh").exists():
            raise PackError(f"{folder} is there and was not made by this command")
        build = build.resolve() if build else build_for_gpus(root)
        missing = [name for name in (*PROGRAMS, "check_launches") if not (build / name).exists()]
        if missing:
            raise PackError(f"{build} lacks {', '.join(missing)}: ninja -C {build} {' '.join(TARGETS)}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        here = pathlib.Path(__file__).resolve().parent
        shutil.copy(here.parent / "gpu_check.sh", folder)
        shutil.copytree(here, folder / "gpu_check", ignore=shutil.ignore_patterns("__pycache__"))
        pack_programs(build, root, folder / "programs.tar.xz")
        pack_models(build / "weft", folder / "models")
        checkpoints.write_shapes(folder / "shapes")
    except (PackError, OSError) as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2
    code = command([build / "weft", "info"]).partition("cuda code")[2].splitlines()[0].strip()
    bytes_of_folder = folder_bytes(folder)
    print(f"{folder}: {bytes_of_folder / 1e6:.1f} MB of at most {MOST_BYTES / 1e6:.0f}; device code: {code}")
    if bytes_of_folder > MOST_BYTES:
        print("gpu_check: the folder is too large", file=sys.stderr)
        return 1
    return 0
