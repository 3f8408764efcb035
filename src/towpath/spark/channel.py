"""How PySpark's client speaks to an endpoint: with a token also to this machine, whatever it is called."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from pyspark.sql.connect.client.core import DefaultChannelBuilder

from towpath.config.nodes import is_loopback


def channel(address: str, options: Mapping[str, str]) -> DefaultChannelBuilder:
    """Options beside the address and not in it: PySpark would split a token at its signs, and show it when it fails."""
    made = _Channel(address)
    for key, value in options.items():
        made.set(key, value)
    return made


class _Channel(DefaultChannelBuilder):
    def toChannel(self) -> grpc.Channel:
        """PySpark speaks TLS wherever there is a token, but to `localhost`; 127.0.0.1 is as near."""
        if self.use_ssl or self.token is None or not is_loopback(self.host.strip("[]")):
            return super().toChannel()
        token = grpc.access_token_call_credentials(self.token)
        return self._secure_channel(
            self.endpoint, grpc.composite_channel_credentials(grpc.local_channel_credentials(), token)
        )
