// The figures of a run: one list of names that tables, reports and comparisons share.

/// A figure's name in JSON, with what it means.
package enum Figure: String, CaseIterable, Sendable {
  case sent, expected, delivered, conflated, lost, duplicated, outOfOrder, errors
  case fixesPerSecond, deliveriesPerSecond, writesPerSecond
  case latencyP50, latencyP90, latencyP99, latencyP999, latencyMax
  case cpuPerFix, cpuPerDelivery, userPerDelivery, systemPerDelivery, userSamples, hubCores
  case bytesInPerFix, bytesOutPerDelivery, fixesPerRead
  case connections, mostConnections, connectSeconds, connectP50, connectP90, connectP99, connectMax
  case cpuPerConnection, bytesPerConnection, bytesUnderLoad
  case residentBytes
  case requests, acknowledged, ackP50, ackP90, ackP99, ackMax
  case events, eventsLost, eventsDuplicated
  case joined, recovered, joinP50, joinP90, joinP99, joinMax
  case journalGroups, journalBytes, journalBusyShare
  case areaUpdates, areaSnapshots, areasSkipped, areaUpdatesPerSecond, spreadP50, spreadP90, spreadP99, spreadMax
  case cpuPerAreaUpdate, userPerAreaUpdate, systemPerAreaUpdate, bytesOutPerAreaUpdate
  case fleet, quietChannels
  case startTime, startSlowest, startBytes, startOwnBytes, executableBytes
  case slowDelivered, extra
  case harnessCores, latenessP99

  package enum Unit: Sendable { case count, perSecond, microseconds, seconds, bytes, cores }
  /// Which way is better; `.neither` says what was asked for and not how it went.
  package enum Better: Sendable { case lower, higher, neither }

  package var unit: Unit {
    switch self {
    case .sent, .expected, .delivered, .conflated, .lost, .duplicated, .outOfOrder, .errors, .connections,
      .mostConnections, .requests, .acknowledged, .events, .eventsLost, .eventsDuplicated, .joined, .recovered,
      .journalGroups, .slowDelivered, .extra, .fixesPerRead, .areaUpdates, .areaSnapshots, .areasSkipped, .fleet,
      .quietChannels, .userSamples:
      .count
    case .fixesPerSecond, .deliveriesPerSecond, .writesPerSecond, .areaUpdatesPerSecond: .perSecond
    case .latencyP50, .latencyP90, .latencyP99, .latencyP999, .latencyMax, .cpuPerFix, .cpuPerDelivery,
      .userPerDelivery, .systemPerDelivery, .connectP50, .connectP90, .connectP99, .connectMax, .cpuPerConnection,
      .ackP50, .ackP90, .ackP99, .ackMax, .joinP50, .joinP90, .spreadP90,
      .joinP99, .joinMax, .latenessP99, .spreadP50, .spreadP99, .spreadMax, .cpuPerAreaUpdate, .userPerAreaUpdate,
      .systemPerAreaUpdate, .startTime, .startSlowest:
      .microseconds
    case .connectSeconds: .seconds
    case .bytesInPerFix, .bytesOutPerDelivery, .bytesPerConnection, .bytesUnderLoad, .residentBytes, .journalBytes,
      .bytesOutPerAreaUpdate, .startBytes, .startOwnBytes, .executableBytes:
      .bytes
    case .hubCores, .harnessCores, .journalBusyShare: .cores
    }
  }

  package var better: Better {
    switch self {
    case .latencyP50, .latencyP90, .latencyP99, .latencyP999, .latencyMax, .cpuPerFix, .cpuPerDelivery,
      .userPerDelivery, .systemPerDelivery, .bytesInPerFix, .bytesOutPerDelivery, .connectSeconds, .connectP50,
      .connectP90, .connectP99, .connectMax, .cpuPerConnection, .bytesPerConnection, .bytesUnderLoad, .residentBytes,
      .ackP50, .ackP90, .ackP99, .ackMax, .joinP50, .joinP90, .joinP99, .joinMax, .startTime, .startSlowest,
      .startBytes, .startOwnBytes, .executableBytes, .spreadP50, .spreadP90, .spreadP99, .spreadMax, .cpuPerAreaUpdate,
      .userPerAreaUpdate, .systemPerAreaUpdate,
      .bytesOutPerAreaUpdate, .areasSkipped, .lost, .duplicated, .outOfOrder, .errors, .eventsLost, .eventsDuplicated,
      .conflated, .hubCores, .journalBusyShare:
      .lower
    case .fixesPerSecond, .deliveriesPerSecond, .areaUpdatesPerSecond: .higher
    case .sent, .expected, .delivered, .fixesPerRead, .connections, .mostConnections, .requests,
      .acknowledged, .events, .joined, .recovered, .journalGroups, .journalBytes, .slowDelivered, .extra, .harnessCores,
      .latenessP99,
      .areaUpdates, .areaSnapshots, .writesPerSecond, .fleet, .quietChannels, .userSamples:
      .neither
    }
  }

  /// For people.
  package var title: String {
    switch self {
    case .sent: "fixes sent"
    case .expected: "positions expected"
    case .delivered: "positions delivered"
    case .conflated: "conflated (a newer one was sent)"
    case .lost: "lost"
    case .duplicated: "duplicated"
    case .outOfOrder: "out of order"
    case .errors: "errors"
    case .fixesPerSecond: "fixes a second"
    case .deliveriesPerSecond: "positions sent a second"
    case .writesPerSecond: "writes a second"
    case .latencyP50: "latency p50"
    case .latencyP90: "latency p90"
    case .latencyP99: "latency p99"
    case .latencyP999: "latency p99.9"
    case .latencyMax: "latency max"
    case .cpuPerFix: "all hub CPU over fixes received"
    case .cpuPerDelivery: "all hub CPU over positions sent"
    case .userPerDelivery: "… its user space over positions sent"
    case .systemPerDelivery: "… its kernel over positions sent"
    case .userSamples: "samples that met user space"
    case .hubCores: "hub CPU, all of it"
    case .bytesInPerFix: "all bytes read over fixes received"
    case .bytesOutPerDelivery: "all bytes written over positions sent"
    case .fixesPerRead: "messages for each read"
    case .connections: "connections as the load began"
    case .mostConnections: "connections at most, with the storm"
    case .connectSeconds: "time until all stood"
    case .connectP50: "time to connect p50"
    case .connectP90: "time to connect p90"
    case .connectP99: "time to connect p99"
    case .connectMax: "time to connect, the last"
    case .cpuPerConnection: "hub CPU for each connection"
    case .bytesPerConnection: "hub memory growth over connections"
    case .bytesUnderLoad: "memory growth over all, after load"
    case .residentBytes: "hub memory"
    case .requests: "batches and moves"
    case .acknowledged: "acks"
    case .ackP50: "ack p50"
    case .ackP90: "ack p90"
    case .ackP99: "ack p99"
    case .ackMax: "ack max"
    case .events: "events"
    case .eventsLost: "events lost"
    case .eventsDuplicated: "events twice"
    case .joined: "sessions that came (again)"
    case .recovered: "brought up to date"
    case .joinP50: "from due to subscribed p50"
    case .joinP90: "from due to subscribed p90"
    case .joinP99: "from due to subscribed p99"
    case .joinMax: "from due to subscribed, the last"
    case .journalGroups: "groups stored"
    case .journalBytes: "bytes stored for each group"
    case .journalBusyShare: "journal at work"
    case .areaUpdates: "updates of the cell"
    case .areaSnapshots: "whole cells among them"
    case .areasSkipped: "skipped (unread ones were in the way)"
    case .areaUpdatesPerSecond: "updates a second"
    case .spreadP50: "from the tick to its reader p50"
    case .spreadP90: "from the tick to its reader p90"
    case .spreadP99: "from the tick to its reader p99"
    case .spreadMax: "from the tick to its reader, the last"
    case .cpuPerAreaUpdate: "all hub CPU over updates sent"
    case .userPerAreaUpdate: "… its user space over updates sent"
    case .systemPerAreaUpdate: "… its kernel over updates sent"
    case .bytesOutPerAreaUpdate: "all bytes written over updates sent"
    case .fleet: "drivers in the index without a session"
    case .quietChannels: "channels without news"
    case .startTime: "from start to listening"
    case .startSlowest: "the slowest"
    case .startBytes: "resident then"
    case .startOwnBytes: "of it the process's own"
    case .executableBytes: "the executable"
    case .slowDelivered: "positions to slow sessions"
    case .extra: "positions to others"
    case .harnessCores: "busiest thread of the load"
    case .latenessP99: "the load's own lateness p99"
    }
  }

  /// The value with its unit, for people.
  package func text(_ value: Double) -> String {
    switch unit {
    case .count: value == value.rounded() ? grouped(Int(value)) : decimals(value, 2)
    case .perSecond: grouped(Int(value.rounded()))
    case .microseconds:
      value >= 1e6
        ? decimals(value / 1e6, 2) + " s"
        : value >= 10_000 ? decimals(value / 1000, 1) + " ms" : decimals(value, value < 1000 ? 1 : 0) + " µs"
    case .seconds: decimals(value, 2) + " s"
    case .bytes: value >= 10_000_000 ? decimals(value / 1_048_576, 1) + " MiB" : grouped(Int(value.rounded())) + " B"
    case .cores: decimals(value, value < 0.1 ? 3 : 2) + " cores"
    }
  }
}
