"""The compiled core of wiretwin."""

__version__: str
