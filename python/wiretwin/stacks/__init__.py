"""Messaging libraries as stacks: what each needs, how its shim is built, how its ranks are started.

A library is reached through a *shim*: a small C file per library under ``shim/``, built on the machine
where it runs.
"""
