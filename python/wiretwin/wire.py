"""A wire between TAP devices: ``python -m wiretwin.wire SPEC``, see the model page of the wire.

It runs beside what is measured, so it imports nothing but the compiled core.
"""

import sys

from wiretwin._core import wire_main

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m wiretwin.wire SPEC  (SPEC is the path of a JSON file)")
    sys.exit(wire_main(sys.argv[1]))
