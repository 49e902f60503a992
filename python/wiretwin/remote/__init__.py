"""Machines reached over ssh, as hosts of a place."""

from wiretwin.remote.place import Remote

__all__ = ["Remote"]
