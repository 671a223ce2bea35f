"""The compiled modules. In a source tree they may be missing; the first import of one reports it."""

try:
    import txnkafka._core.mapping  # noqa: F401  # every user of a compiled module loads it
except ModuleNotFoundError as error:
    if error.name != "txnkafka._core.mapping":
        raise
    raise ImportError(
        f"{__path__[0].removesuffix('/_core')} is source code without modules compiled for this Python; "
        "run Python in another directory, where the installed package is found, "
        "or compile them: pip install -e ."
    ) from None
