"""h2's connection as both roles set it up: settings, windows, and what of it is ours to decide."""

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import Event
from h2.settings import SettingCodes, Settings
from hyperframe.frame import DataFrame, Frame

from interlock.boundary.net.http2_frames import FRAME_BYTES
from interlock.boundary.net.plan import NetLimits

STREAMS = 128
"""What one connection may have open at once."""
STREAM_WINDOW_BYTES = 1024 * 1024
CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
"""What of all streams together may wait to be passed on: the bound of what slow readers cost."""
TABLE_BYTES = 4096


class _Data(DataFrame):
    """A DATA frame with a short name: h2 spells each out in hex for a log that is off, a quarter of its work."""

    def __repr__(self) -> str:
        return "DataFrame"


class _Connection(H2Connection):
    MAX_CLOSED_STREAMS = 1024

    def __init__(self, config: H2Configuration) -> None:
        super().__init__(config)
        self._frame_dispatch_table[_Data] = self._receive_data_frame

    def _receive_frame(self, frame: Frame) -> list[Event]:
        if frame.__class__ is DataFrame:
            frame.__class__ = _Data
        return super()._receive_frame(frame)


def open_connection(limits: NetLimits, *, server: bool) -> H2Connection:
    """Make the connection of one role, its settings and first window update ready to be sent."""
    made = _Connection(
        H2Configuration(
            client_side=not server,
            header_encoding=None,
            validate_inbound_headers=False,  # `heads` does, so that one stream's fault is its own
            validate_outbound_headers=False,
            normalize_outbound_headers=True,
        )
    )
    values = {
        SettingCodes.HEADER_TABLE_SIZE: TABLE_BYTES,
        SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES,
        SettingCodes.MAX_FRAME_SIZE: FRAME_BYTES,
        SettingCodes.MAX_HEADER_LIST_SIZE: limits.head_bytes,
        SettingCodes.ENABLE_PUSH: 0,
    }
    if server:
        values[SettingCodes.MAX_CONCURRENT_STREAMS] = STREAMS
    made.local_settings = Settings(client=not server, initial_values=values)
    made.initiate_connection()
    # a client that has not seen the settings yet may open more: the surplus is refused stream by stream, not with
    # the whole connection as h2 would
    made.local_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = 8 * STREAMS
    made.local_settings.acknowledge()
    made.max_inbound_frame_size = FRAME_BYTES
    made.decoder.max_header_list_size = limits.head_bytes
    made.increment_flow_control_window(CONNECTION_WINDOW_BYTES - 65535)
    return made
