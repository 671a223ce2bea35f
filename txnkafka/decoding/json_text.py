"""Keys and values that are JSON text."""

from __future__ import annotations

import json
from typing import Any

from txnkafka.errors import DecodeError


class JsonDecoder:
    """Decodes JSON in UTF-8."""

    def __call__(self, content: bytes) -> Any:
        """Return the parsed value. Raises DecodeError."""
        try:
            return json.loads(content.decode())
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"it is not JSON: {error}") from None
