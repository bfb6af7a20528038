"""Plans the offset ranges of a query on the driver: lists partitions, resolves their start and end, creates tasks.

The batch reader and the stream reader share it. It checks the positions of the user against the offsets of the brokers.
"""

from collections.abc import Iterable, Mapping, Set

from aiokafka.structs import TopicPartition

from headgate.spark_udfs.source.cluster import Cluster
from headgate.spark_udfs.source.errors import BadOption, DataLost, TopicMissing
from headgate.spark_udfs.source.fetching import lost
from headgate.spark_udfs.source.offsets import Mark, Offsets, text_of
from headgate.spark_udfs.source.options import ReadOptions
from headgate.spark_udfs.source.positions import (
    EARLIEST,
    LATEST,
    AtEdge,
    AtOffsets,
    AtTimes,
    Edge,
    NoMatch,
    Position,
    name_of,
)
from headgate.spark_udfs.source.ranges import OffsetRange, divided
from headgate.spark_udfs.source.topics import Selection


async def partitions_and_latest(cluster: Cluster, options: ReadOptions) -> Mark:
    """Returns all existing partitions with their ends. The plan reports deleted topics as data loss."""
    places = await cluster.partitions(options.selection, may_miss=not options.is_loss_fatal)
    ids = cluster.topic_ids(places) if options.checks_topic_ids else {}
    return Mark(await cluster.edges(places, LATEST, options.isolation), ids)


async def resolved(
    cluster: Cluster, options: ReadOptions, position: Position, edge: Edge, places: Iterable[TopicPartition]
) -> Offsets:
    """Resolves a position to offsets. Raises `DataLost`, and `BadOption` if it does not match the partitions."""
    places = list(places)
    if isinstance(position, AtEdge):
        return await cluster.edges(places, position.where, options.isolation)
    if isinstance(position, AtTimes):
        return await _by_time(cluster, options, position, edge, places)
    return await _by_number(cluster, options, position, edge, places)


async def batch_ranges(cluster: Cluster, options: ReadOptions) -> list[OffsetRange]:
    """Returns the offset ranges of a batch query."""
    places = await cluster.partitions(options.selection)
    start = await resolved(cluster, options, options.start, Edge.START, places)
    end = await resolved(cluster, options, options.end, Edge.END, places)
    ranges = [OffsetRange(at, start[at], end[at]) for at in places]
    for one in ranges:
        if one.size < 0:
            raise BadOption(
                name_of(Edge.END, options.end),
                f"{text_of([one.at])} would end at offset {one.end}, before its start at {one.start}",
            )
    return divided(ranges, options.partitions_min, options.records_per_partition_max)


async def stream_ranges(cluster: Cluster, options: ReadOptions, start: Mark, end: Mark) -> list[OffsetRange]:
    """Returns the offset ranges of a micro-batch. Raises `DataLost` if the brokers lack offsets of the checkpoint."""
    check_gone(options, start.offsets.keys() - end.offsets.keys())
    check_recreated(options, start, end)
    ends = await _still_there(cluster, options, end)
    new = ends.keys() - start.offsets.keys()
    recreated = start.recreated(end)
    first = await cluster.edges(ends, EARLIEST, options.isolation)
    for at in sorted(new):
        if first[at] > 0:
            lost(
                f"{text_of([at])} is new and its first {first[at]} records are gone already.",
                is_fatal=options.is_loss_fatal,
            )
    begin = {at: first[at] if at in new | recreated else start.offsets[at] for at in ends}
    for at, offset in sorted(begin.items()):
        if offset < first[at] and offset < ends[at]:
            lost(
                f"Offsets {offset} to {min(first[at], ends[at]) - 1} of {text_of([at])} are gone: the log now begins "
                f"at {first[at]}, by retention.",
                is_fatal=options.is_loss_fatal,
            )
    ranges = [OffsetRange(at, max(begin[at], first[at]), ends[at]) for at in sorted(ends)]
    return divided(ranges, options.partitions_min, options.records_per_partition_max)


def check_recreated(options: ReadOptions, start: Mark, end: Mark) -> None:
    """Checks that no topic was re-created since it was read. Raises `DataLost`."""
    others = start.other_topics(end)
    for at in sorted(start.recreated(end)):
        sign, advice = f"now ends at {end.offsets[at]}", ""
        if at.topic in others:
            before, after = start.topic_ids[at.topic], end.topic_ids[at.topic]
            sign = f"topic {at.topic} had the id {before} then, and has {after} now"
            advice = " If it is a copy with the same offsets in another cluster, set checkTopicIds to false."
        lost(
            f"{text_of([at])} was read up to offset {start.offsets[at]} and {sign}: the topic was deleted and "
            f"re-created.{advice}",
            is_fatal=options.is_loss_fatal,
        )


async def _still_there(cluster: Cluster, options: ReadOptions, end: Mark) -> Offsets:
    """Returns the ends of a batch without topics that were deleted after planning, perhaps before a restart.

    Raises `DataLost`.
    """
    if not end.offsets:
        return {}
    planned = Selection(assigned=tuple(sorted(end.offsets)))
    try:
        places = await cluster.partitions(planned)
    except TopicMissing:
        places = await cluster.partitions(planned, may_miss=True)
    others = end.other_topics(Mark({}, cluster.topic_ids(places)))
    there = {at: end.offsets[at] for at in places if at.topic not in others}
    gone = end.offsets.keys() - there.keys()
    if gone:
        lost(
            f"{text_of(gone)} is part of the batch but no longer in the cluster: its topic was deleted, and perhaps "
            "re-created, after the batch was planned.",
            is_fatal=options.is_loss_fatal,
        )
    return there


def check_gone(options: ReadOptions, gone: Set[TopicPartition]) -> None:
    """Checks partitions of the checkpoint that the query no longer reads.

    Raises `BadOption` if the options no longer select a partition, and `DataLost` if it no longer exists.
    """
    unnamed = [at for at in gone if not options.selection.includes(at)]
    if unnamed and options.is_loss_fatal:
        raise BadOption(
            options.selection.option,
            f"{text_of(unnamed)} is in the checkpoint but is no longer selected. Select it again, start with a new "
            "checkpoint, or set failOnDataLoss to false to continue without it",
        )
    if gone:
        lost(
            f"{text_of(gone)} was read before and is no longer in the cluster: records that were not read are lost.",
            is_fatal=options.is_loss_fatal,
        )


async def _by_number(
    cluster: Cluster, options: ReadOptions, position: AtOffsets, edge: Edge, places: list[TopicPartition]
) -> Offsets:
    name = name_of(edge, position)
    _check_places(name, position.by_partition, places, "-2 stands for earliest, -1 for latest")
    first = await cluster.edges(places, EARLIEST, options.isolation)
    last = await cluster.edges(places, LATEST, options.isolation)
    found: Offsets = {}
    for at in places:
        offset = position.by_partition[at]
        if offset in (EARLIEST, LATEST):
            offset = first[at] if offset == EARLIEST else last[at]
        if not first[at] <= offset <= last[at]:
            problem = (
                f"Option '{name}': {text_of([at])} has no offset {offset}: its log holds {first[at]} up to {last[at]}."
            )
            if options.is_loss_fatal:
                raise DataLost(problem)
            lost(problem, is_fatal=False)
            offset = min(max(offset, first[at]), last[at])
        found[at] = offset
    return found


async def _by_time(
    cluster: Cluster, options: ReadOptions, position: AtTimes, edge: Edge, places: list[TopicPartition]
) -> Offsets:
    name = name_of(edge, position)
    if position.by_partition is not None:
        _check_places(name, position.by_partition, places, "times are in milliseconds")
        times = {at: position.by_partition[at] for at in places}
    else:
        times = dict.fromkeys(places, position.everywhere or 0)
    found = await cluster.offsets(times, options.isolation)
    last = await cluster.edges(places, LATEST, options.isolation)
    missing = [at for at in places if found[at] is None]
    if missing and edge is Edge.START and position.no_match is NoMatch.ERROR:
        raise BadOption(
            name,
            f"{text_of(missing)} has no record at or after that time; "
            "with startingOffsetsByTimestampStrategy latest it begins with the next one to come",
        )
    resolved_offsets: Offsets = {}
    for at in places:
        offset = found[at]
        # Clamp the offset: it can belong to a record of an open transaction, which is not readable yet.
        resolved_offsets[at] = last[at] if offset is None else min(offset, last[at])
    return resolved_offsets


def _check_places(
    name: str, given: Mapping[TopicPartition, int], places: Iterable[TopicPartition], legend: str
) -> None:
    wanted = set(places)
    missing, unknown = wanted - given.keys(), given.keys() - wanted
    if unknown:
        raise BadOption(name, f"{text_of(unknown)} is not among the partitions that are read")
    if missing:
        raise BadOption(name, f"it must name every partition that is read; {text_of(missing)} is missing ({legend})")
