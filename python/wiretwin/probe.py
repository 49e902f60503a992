"""A probe process: ``python -m wiretwin.probe SPEC``, see the probe protocol reference.

Started for every launch, so it imports nothing but the compiled core.
"""

import sys

from wiretwin._core import probe_main

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m wiretwin.probe SPEC  (SPEC is the path of a JSON file)")
    sys.exit(probe_main(sys.argv[1]))
