"""ApiVersions of a client: its request, and the versions in the response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txnkafka.client.transport import Versions
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import error_for
from txnkafka.version import VERSION
from txnkafka.wire.messages.api_versions import ApiVersionsRequest
from txnkafka.wire.messages.apis import APIS

if TYPE_CHECKING:
    from txnkafka.wire.messages.api_versions import ApiVersionsResponse


def api_versions_request() -> ApiVersionsRequest:
    """Return the request, with the name of this client (KIP-511)."""
    name = "".join(each if each.isalnum() or each in "-." else "-" for each in VERSION)
    return ApiVersionsRequest(client_software_name="txnkafka", client_software_version=name.strip("-."))


def versions_of(response: ApiVersionsResponse | Any) -> Versions:
    """Return the versions in a response. Raises a KafkaError if it has an error."""
    if response.error_code != ErrorCode.NONE:
        raise error_for(response.error_code)
    ranges = {
        APIS[row.api_key].name: (row.min_version, row.max_version)
        for row in response.api_keys
        if row.api_key in APIS
    }
    features = {row.name: row.max_version_level for row in response.finalized_features}
    return Versions(ranges, features, response.finalized_features_epoch)
