import filecmp
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_generated_code_is_not_stale(tmp_path: os.PathLike[str]) -> None:
    """Generating from the contract gives exactly the code that is checked in."""
    out = os.fspath(tmp_path)
    command = [f"{ROOT}/scripts/proto", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    fresh, kept = f"{out}/memoryd/pb", f"{ROOT}/src/memoryd/pb"
    names = sorted(os.listdir(fresh))
    contracts = [n for n in os.listdir(f"{ROOT}/proto/memoryd/pb") if n.endswith(".proto")]
    assert len(names) == 4 * len(contracts)
    assert set(names) == {n for n in os.listdir(kept) if "_pb2" in n}
    assert filecmp.cmpfiles(fresh, kept, names, shallow=False)[1:] == ([], [])
