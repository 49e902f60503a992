"""Machines reached over ssh, by srun or by mpiexec, as hosts of a place."""

from wiretwin.remote.place import Remote

__all__ = ["Remote"]
