"""The compiled core of wiretwin."""

__version__: str

def probe_main(spec_path: str) -> int:
    """Run the probe that the JSON file specifies; the exit status."""
