"""Consumer lag: the difference between log end offset and committed offset of a partition."""

from dataclasses import dataclass

from headgate.kafka_client.admin.groups import Consumer, Group, committed_offsets
from headgate.kafka_client.admin.offsets import LATEST, Place, list_offsets, still_there
from headgate.kafka_client.errors import ResourceNotFound
from headgate.kafka_client.request_client import RequestClient


@dataclass(frozen=True, slots=True)
class Lag:
    place: Place
    current_offset: int
    log_end_offset: int
    consumer: Consumer | None
    """The member that is assigned to the partition."""

    @property
    def lag(self) -> int:
        return self.log_end_offset - self.current_offset


async def list_lags(client: RequestClient, group: Group) -> list[Lag]:
    """Returns one lag for each existing partition with a committed offset.

    Raises ResourceNotFound if the group has no committed offsets.
    """
    committed = await committed_offsets(client, group.id)
    if not committed:
        raise ResourceNotFound("Consumer group offsets could not be found.")
    places = await still_there(client, committed)
    ends = await list_offsets(client, dict.fromkeys(places, LATEST))
    owners = group.owners()
    return [Lag(place, committed[place], ends[place], owners.get(place)) for place in places]
