"""The compiled modules. In a source tree they may be missing, which the first import of one says."""

try:
    import txnkafka._core.mapping  # noqa: F401  # loaded by all that use another of them, too
except ModuleNotFoundError as error:
    if error.name != "txnkafka._core.mapping":
        raise
    raise ImportError(
        f"{__path__[0].removesuffix('/_core')} is source code without modules compiled for this Python; "
        "run Python in another directory, where the installed package is found, "
        "or compile them: pip install -e ."
    ) from None
