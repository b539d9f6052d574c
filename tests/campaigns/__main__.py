"""`python -m campaigns NAME [--count N] [--seed N]`: exit 1 where something was found."""

from __future__ import annotations

import argparse
import importlib
import sys
import time

NAMES = ("inputs", "fuzz", "flips", "forged", "faults", "kills", "interrupts", "disks", "mutants")


def main() -> int:
    parser = argparse.ArgumentParser(prog="campaigns", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--count", type=int, default=0, help="how many tries; 0 is the long form's number")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    campaign = importlib.import_module(f"campaigns.{given.name}")
    start = time.process_time()
    tally = campaign.run(given.count or campaign.LONG, given.seed)
    print(tally.line(given.name), f"({time.process_time() - start:.0f} s of CPU)", flush=True)
    for fault in tally.faults:
        print("  " + fault)
    return int(tally.found > 0)


if __name__ == "__main__":
    sys.exit(main())
