// The rows of the table of metrics that are about streams of events to other systems, each with the stream's name as a
// label.
import HubWebhooks

extension Metric {
  static let streams: [Metric] = [
    Metric(
      name: "stream_events_total", label: "stream",
      help: "Events by outcome: stored, refused (tried again, or given up); repeated: stored before, and dropped."
    ) { reading in
      reading.streams.map {
        $0.flatMap {
          outcomes(
            of: $0.name, [("stored", $0.stored - $0.repeats), ("repeated", $0.repeats), ("refused", $0.refused)])
        }
      }
    },
    Metric(
      name: "stream_positions_total", label: "stream",
      help: "Positions by outcome: sent; left_out: replaced by a newer one, or the server was away or refused."
    ) { reading in
      reading.streams.map {
        $0.flatMap { stream in
          outcomes(
            of: stream.name, stream.positionsSent.map { [("sent", $0), ("left_out", stream.positionsLeftOut)] } ?? [])
        }
      }
    },
    ofStream("stream_dead_total", { $0.dead }, "Events that were given up."),
    ofStream(
      "stream_lost_total", { $0.lost }, "Groups of the journal deleted by retention, or damaged, before they were sent."
    ),
    ofStream("stream_connection_failures_total", { $0.failures }, "Connections that ended or could not be made."),
    ofStream("stream_not_stored_total", { $0.notStored }, "Times that a stream's progress could not be stored."),
    ofStream("stream_under_way", { UInt64($0.underWay) }, "Events that have no answer yet."),
    Metric(
      name: "stream_oldest_undelivered_seconds", label: "stream",
      help: "Age of the oldest known event that is not stored at the server; 0 for none."
    ) { reading in
      reading.streams.map { $0.map { ("", $0.name, .seconds(Double($0.oldestMilliseconds) / 1000)) } }
    },
    ofStream("stream_up", { $0.isUp ? 1 : 0 }, "1 where the server takes events, as far as is known."),
    ofStream(
      "stream_enabled", { $0.isEnabled ? 1 : 0 },
      "0 where its receiver has answered 410, or the journal can't be read."),
  ]

  private static func ofStream(
    _ name: String, _ read: @escaping @Sendable (StreamFigures) -> UInt64, _ help: String
  ) -> Metric {
    Metric(name: name, label: "stream", help: help) { reading in
      reading.streams.map { $0.map { ("", $0.name, .count(read($0))) } }
    }
  }
}
