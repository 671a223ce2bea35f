"""Handlers of the broker's APIs: one module for each API, and a table of fixed answers.

A handler translates between the messages of one API and the broker, and decides all that depends on the
version: ``handle(broker, request, version, peer, reply)``. ``@serves`` registers it. The module of an API has
the name of the API's messages, and is imported with the first request.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidRequestError
from txnkafka.server.error_response import error_response
from txnkafka.server.handlers.fixed_answers import FIXED_ANSWERS
from txnkafka.wire.messages.apis import APIS, Api

if TYPE_CHECKING:
    from txnkafka.server.peer import Cancel, Peer, Reply

__all__ = ["SERVED", "Handler", "handler_of", "serves"]

Handler = Callable[[Any, Any, int, Any, Any], "Cancel | None"]

LOG = logging.getLogger("txnkafka.server")
_MODULES: Final = {module.name for module in pkgutil.iter_modules(__path__)}
SERVED: Final = frozenset(
    api.key for api in APIS.values() if api.module in _MODULES or api.name in FIXED_ANSWERS
)
"""Keys of the APIs that have a handler."""

_HANDLERS: Final[dict[int, Handler]] = {}


def serves(name: str, *, has_isolation_level: bool = False) -> Callable[[Handler], Handler]:
    """Register a function as the handler of an API.

    With ``has_isolation_level``, an unknown isolation level fails the request instead of the connection, as
    in ``IsolationLevel.forId``."""
    (api,) = (each for each in APIS.values() if each.name == name)

    def register(handler: Handler) -> Handler:
        _HANDLERS[api.key] = _answering_unknown_levels(api, handler) if has_isolation_level else handler
        return handler

    return register


def handler_of(api: Api) -> Handler:
    """Return the handler of an API in ``SERVED``."""
    handler = _HANDLERS.get(api.key)
    if handler is None:
        if api.name in FIXED_ANSWERS:
            _HANDLERS[api.key] = _fixed(api)
        else:
            import_module(f"{__name__}.{api.module}")
        handler = _HANDLERS[api.key]
    return handler


def _fixed(api: Api) -> Handler:
    answer, messages = FIXED_ANSWERS[api.name], import_module(f"txnkafka.wire.messages.{api.module}")

    def handle(broker: Any, request: Any, version: int, peer: Peer, reply: Reply) -> None:
        reply(answer(messages, request, version))

    return handle


def _answering_unknown_levels(api: Api, handler: Handler) -> Handler:
    def answer(broker: Any, request: Any, version: int, peer: Peer, reply: Reply) -> Cancel | None:
        try:
            return handler(broker, request, version, peer, reply)
        except InvalidRequestError as error:
            LOG.warning("%s: %s is refused: %s", peer.client_host, api.name, error)
            reply(error_response(api, version, request, ErrorCode.UNKNOWN_SERVER_ERROR))
            return None

    return answer
