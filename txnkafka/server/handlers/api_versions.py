"""ApiVersions: the served APIs with their versions, and the features.

Versions 0 to 5. From 3 on the response has features; 3 leaves out supported features whose lowest level is 0,
which its clients reject (KAFKA-17011). In 5 the client may name the cluster and node that it expects; another
node answers REBOOTSTRAP_REQUIRED (KIP-1242). A later version is answered in version 0 with
UNSUPPORTED_VERSION and the versions of ApiVersions alone, so that the client can ask again (KIP-511).
Unstable versions are announced with ``unstable.api.versions.enable`` only.

Clients choose their transaction protocol from this response: the finalized level 2 of ``transaction.version``
allows the versions that add partitions with the data (KIP-890).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from txnkafka.broker.registry.features import SERVED_FEATURES, finalized_features
from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import SERVED, serves
from txnkafka.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from txnkafka.wire.messages.apis import API_VERSIONS, APIS

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

_LEGAL_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@serves("ApiVersions")
def handle(broker: Broker, request: ApiVersionsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once."""
    own = APIS[API_VERSIONS]
    if not own.has(version):
        only = ApiVersion(api_key=own.key, min_version=own.min_version, max_version=own.max_version)
        reply(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(only,)))
    elif version >= 3 and not _is_legal(request):
        reply(ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
    elif _is_for_another(broker, request):
        reply(ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED))
    else:
        reply(_answer(broker, version))


def _is_for_another(broker: Broker, request: ApiVersionsRequest) -> bool:
    meant = request.cluster_id, request.node_id
    return request.cluster_id is not None and meant != (broker.cluster_id, broker.node_id)


def _is_legal(request: ApiVersionsRequest) -> bool:
    software = request.client_software_name, request.client_software_version
    names_both_or_none = (request.cluster_id is None) == (request.node_id == -1)
    return names_both_or_none and all(_LEGAL_SOFTWARE.fullmatch(text) for text in software)


def _answer(broker: Broker, version: int) -> ApiVersionsResponse:
    unstable = broker.config.unstable_api_versions_enable
    ranges = [(key, *APIS[key].announced_range(unstable=unstable)) for key in sorted(SERVED)]
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in ranges
        ),
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SERVED_FEATURES.items()
            if version >= 4 or low > 0
        ),
        finalized_features_epoch=broker.features_epoch,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(finalized_features(broker).items())
        ),
    )
