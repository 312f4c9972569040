"""Build a corpus on a Dask cluster while its processes are killed, and compare it with one that nobody disturbed.

    python .ci/kill_builds.py [--kills 10] [--seed 0] [--works 6000]

Worker, scheduler and client are killed at random; after each kill the missing processes are started again, and the
same command continues. At the end the corpus has to be the same, and no partition may have been embedded twice but
those that were in hand when something died.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PORT = 18787
ADDRESS = f"tcp://127.0.0.1:{PORT}"
PER_FILE = 40  # works in a file of the snapshot
PART = 64  # papers in a part of the vectors, so that there are enough of them to be interrupted
BUILD = f"""
import sys
import citerec
from citerec.ranking import building, embedding
from citerec.ground.settings import load_settings
folder, snapshot, engine, log = sys.argv[1:]
embedding.PART = building.PART = {PART}
write, done = embedding._write_part, embedding._is_done
def told(*words):
    with open(log, "a") as file: print(*words, file=file, flush=True)
def is_done(place, start, ids):
    there = done(place, start, ids)
    if not there: told("begun", place.name, start)
    return there
def written(place, start, ids, vectors):
    write(place, start, ids, vectors)
    told("done", place.name, start)
embedding._is_done, embedding._write_part = is_done, written
settings = load_settings("offline", engine=engine or None)
citerec.build(folder, "openalex-snapshot", settings, progress=False, dir=snapshot, topics="all",
              years="1900-2030").close()
"""


def start(*command: str) -> subprocess.Popen:
    """Start a process that dies with nobody else."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, *command], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def kill(process: subprocess.Popen) -> None:
    """End a process and its children without a warning."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Cluster:
    """A scheduler, two workers, and the command that builds."""

    def __init__(self, home: Path, snapshot: Path):
        self.build = ["-P", "-c", BUILD, str(home / "killed"), str(snapshot), ADDRESS, str(home / "log")]
        self.running: dict[str, subprocess.Popen] = {}

    def ensure(self) -> None:
        """Start what does not run."""
        worker = ["-m", "distributed.cli.dask_worker", ADDRESS, "--nthreads", "1", "--no-dashboard",
                  "--host", "127.0.0.1"]
        commands = {"scheduler": ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(PORT),
                                  "--no-dashboard", "--no-show"],
                    "worker 1": worker, "worker 2": worker, "client": self.build}
        for name, command in commands.items():
            process = self.running.get(name)
            if process is None or process.poll() is not None and (name, process.poll()) != ("client", 0):
                self.running[name] = start(*command)
                if name in ("scheduler", "worker 2"): time.sleep(3)

    def close(self) -> None:
        """End everything."""
        for process in self.running.values():
            if process.poll() is None: kill(process)


def digest(folder: Path) -> dict:
    """What a corpus holds, in a form that can be compared."""
    import numpy as np

    import citerec
    from citerec.indexes import embedding
    embedding.PART = PART
    recommender = citerec.load(folder, llm="offline")
    with recommender.corpus as corpus:
        texts = corpus.store.by_row.titles()[:20]
        papers = [paper.model_dump_json() for paper in corpus.papers(corpus.ids)]
        return {"papers": papers, "vectors": np.asarray(corpus.vectors, dtype=np.float32),
                "graph": corpus.store.by_row.edges().tolist(), "words": sorted(corpus.lexical.frequencies.items()),
                "recommended": [[one.paper_id for one in recommender.recommend(text)] for text in texts]}


def made_snapshot(home: Path, works: int) -> Path:
    """Write a made-up snapshot with many small files."""
    from citerec.testing.fake_openalex import made_up_works, write_snapshot
    made = made_up_works(works)
    files = {f"2026-01-{1 + i // PER_FILE % 28:02}/part_{i // PER_FILE:03}": made[i : i + PER_FILE]
             for i in range(0, len(made), PER_FILE)}
    return write_snapshot(home / "snapshot", files)


def disturb(cluster: Cluster, kills: int, chance: random.Random) -> Counter:
    """Kill processes at random moments until the build has ended; gives who was killed."""
    killed = Counter()
    cluster.ensure()
    while cluster.running["client"].poll() != 0:
        if sum(killed.values()) < kills:
            time.sleep(chance.uniform(3, 8))
            name = chance.choice(["worker 1", "worker 2", "scheduler", "client"])
            if cluster.running["client"].poll() == 0: break
            if cluster.running[name].poll() is None:
                kill(cluster.running[name])
                killed[name] += 1
                print(f"killed {name}", flush=True)
        time.sleep(1)
        cluster.ensure()
    return killed


def same(one: dict, other: dict) -> dict[str, bool]:
    """What is the same in two corpora; vectors up to what 16 bits keep."""
    import numpy as np
    near = one["vectors"].shape == other["vectors"].shape and np.allclose(one["vectors"], other["vectors"], atol=2e-3)
    return {name: one[name] == other[name] for name in ("papers", "graph", "words", "recommended")} | {"vectors": near}


def main() -> int:
    """Build twice, once disturbed; the exit code is 0 where both corpora are the same."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("kills", 10), ("seed", 0), ("works", 6000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        snapshot = made_snapshot(home, args.works)
        cluster = Cluster(home, snapshot)
        try: killed = disturb(cluster, args.kills, random.Random(args.seed))
        finally: cluster.close()
        undisturbed = [str(home / "quiet"), str(snapshot), "", str(home / "quiet.log")]
        subprocess.run([sys.executable, "-P", "-c", BUILD, *undisturbed], check=True)
        agree = same(digest(home / "quiet"), digest(home / "killed"))
        log = Counter((home / "log").read_text().splitlines())
    begun = {line: n for line, n in log.items() if line.startswith("begun") and n > 1}
    done = {line: n for line, n in log.items() if line.startswith("done") and n > 1}
    parts = sum(line.startswith("done") for line in log)
    told = {"killed": killed, "same": {k: bool(v) for k, v in agree.items()}, "parts": parts,
            "embedded twice to the end": len(done), "begun again": sum(n - 1 for n in begun.values())}
    print(json.dumps(told, indent=1))
    enough = sum(killed.values()) >= args.kills
    if not enough: print("The build ended before all kills: give more --works.")
    return 0 if all(agree.values()) and not done and enough else 1


if __name__ == "__main__":
    sys.exit(main())
