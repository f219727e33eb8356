// All metrics, in the order of the page: a row each, from which the page and the table in deploy/README.md are made
// (`make docs`).
import HubBytes
import HubCore
import HubJournal
import HubMessages
import HubPages
import HubRuntime
import HubSystem
import HubTransport

extension Metric {
  static let all =
    sessions + tls + traffic + compression + problems + admission + fixes + events + tables + queries + storage
    + history + cluster + webhooks + streams + process

  private static let sessions: [Metric] = [
    Metric("connections", loops: \.connections, "Open TCP connections."),
    Metric("sessions", by: "role", "Open sessions by role, WebSockets and event streams.", read: \.sessions),
    Metric("sessions_by_transport", by: "transport", "Open sessions by transport.") { reading in
      Carrier.allCases.map { carrier in
        ("\(carrier.name)", UInt64(reading.sum { $0.sessionsByCarrier[Int(carrier.rawValue)] }))
      }
    },
    Metric("subscriptions", loops: \.fanOut.subscriptions, "Subscriptions of open sessions."),
    Metric("subscriptions_ended_total", by: "reason", "Subscriptions that the hub ended, by reason.") { reading in
      Unsubscribed.Reason.allCases.filter { $0 != .asked }.map { reason in
        ("\(reason.name)", reading.sum { $0.fanOut.subscriptionsEnded[Int(reason.rawValue)] })
      }
    },
    Metric("sessions_opened_total", loops: \.sessionsOpened, "Sessions opened."),
    Metric("handshakes_refused_total", loops: \.handshakesRefused, "Upgrades refused."),
    Metric("accepted_total", loops: \.transport.accepted, "TCP connections accepted."),
  ]

  private static let tls: [Metric] = [
    Metric("tls_handshakes_total", by: "outcome", "TLS handshakes by outcome.") { reading in
      let resumed = reading.sum(\.transport.tlsHandshakesResumed)
      return [
        ("full", reading.sum(\.transport.tlsHandshakes) - resumed), ("resumed", resumed),
        ("failed", reading.sum(\.transport.tlsHandshakesFailed)),
      ]
    },
    Metric(
      "tls_handshakes_deferred_total", loops: \.transport.tlsHandshakesDeferred,
      "Times that a handshake waited for the next turn of its loop."),
    Metric("tls_failures_total", loops: \.transport.tlsFailures, "Connections that broke TLS after their handshake."),
  ]

  private static let traffic: [Metric] = [
    Metric("messages_in_total", loops: \.messagesIn, "Messages from clients."),
    Metric("replies_out_total", loops: \.fanOut.repliesOut, "Answers to clients."),
    Metric("publications_out_total", loops: \.fanOut.publicationsOut, "Publications sent to subscribers."),
    Metric("positions_out_total", loops: \.fanOut.positionsOut, "Positions sent to subscribers."),
    Metric("area_updates_out_total", loops: \.fanOut.areaUpdatesOut, "Updates of cells sent to subscribers."),
    Metric(
      "area_updates_skipped_total", loops: \.fanOut.areaUpdatesSkipped,
      "Updates of cells that a session was too slow for: it gets a snapshot later."),
    Metric("area_snapshots_out_total", loops: \.fanOut.areaSnapshotsOut, "Snapshots of cells sent."),
    Metric("encodes_total", loops: \.fanOut.encodes, "Publications encoded, once for all subscribers."),
    Metric("recovered_total", loops: \.fanOut.recovered, "Missed events sent on subscribing again."),
    Metric("read_bytes_total", loops: \.transport.bytesRead, "Bytes read."),
    Metric("written_bytes_total", loops: \.transport.bytesWritten, "Bytes written."),
    Metric("reads_total", loops: \.transport.reads, "Reads that gave bytes."),
    Metric("writes_total", loops: \.transport.writes, "Writes."),
    Metric(
      "send_batches_total", loops: \.transport.sendBatches,
      "System calls that sent to several connections, by io_uring."),
    Metric("turns_total", loops: \.transport.turns, "Turns of event loops."),
    Metric("loop_stalls_total", loops: \.stalls, "How often a loop did not turn for more than a second."),
    Metric(
      "turns_assisted_total", loops: \.transport.assists, "Turns of a loop that slept, run by the thread of another."),
    Metric("turn_pauses_total", loops: \.transport.pauses, "Times a loop under load let its sockets gather."),
    Metric(
      "turns_cut_total", loops: \.transport.turnsCut, "Turns that left sockets to the next one, having read enough."),
  ]

  private static let compression: [Metric] = [
    Metric(
      "compressed_sessions_opened_total", loops: \.compressedSessionsOpened,
      "WebSocket sessions that agreed to compression."),
    Metric("binary_sessions", loops: \.binarySessions, "Open sessions that speak locationhub.v1.binary."),
    Metric("binary_names_total", loops: \.fanOut.namesSent, "Names of channels sent to binary subscribers."),
    Metric(
      "compression_contexts", loops: \.fanOut.compression.contexts, "Sessions with deflate contexts of their own."),
    Metric(
      "deflates_total", loops: \.fanOut.compression.deflates,
      "Messages compressed, a publication once for all subscribers."),
    Metric(
      "deflate_input_bytes_total", loops: \.fanOut.compression.deflatedBytesIn,
      "Bytes of messages before they were compressed."),
    Metric(
      "deflate_output_bytes_total", loops: \.fanOut.compression.deflatedBytesOut,
      "Bytes of messages after they were compressed."),
    Metric("inflates_total", loops: \.fanOut.compression.inflates, "Compressed messages from clients."),
    Metric(
      "inflate_output_bytes_total", loops: \.fanOut.compression.inflatedBytes,
      "Bytes of clients' compressed messages when inflated."),
  ]

  private static let problems: [Metric] = [
    Metric("dropped_total", by: "reason", "What was not delivered, by reason.", read: \.dropped),
    Metric("errors_total", by: "code", "Errors sent to clients, by code.", read: \.errors),
    Metric("closes_total", by: "code", "Sessions closed by the hub, by close code.") { $0.merged(\.closesSent) },
    Metric("http_responses_total", by: "status", "HTTP responses by status.") { $0.merged(\.responses) },
    Metric("protocol_errors_total", loops: \.protocolErrors, "Broken WebSocket frames."),
    Metric("bad_requests_total", loops: \.badRequests, "Broken HTTP requests."),
    Metric("request_timeouts_total", loops: \.requestTimeouts, "Requests that never became complete."),
    Metric("rate_pauses_total", loops: \.ratePauses, "Times that reading paused because of a session's rate."),
    Metric(
      "turn_waits_total", loops: \.turnWaits,
      "Times that a session waited for the next turn because this one's work was used up."),
    Metric(
      "accept_pauses_total", loops: \.transport.acceptPauses,
      "Times that accepting stopped because descriptors ran out."),
    Metric("connections_refused_total", loops: \.transport.refused, "Connections over the limit."),
    Metric("outbox_bytes", loops: \.transport.outboxBytes, "Unsent bytes of slow sessions."),
  ]

  private static let admission: [Metric] = [
    Metric("origins_refused_total", loops: \.originsRefused, "Requests refused for their Origin."),
    Metric("credential_checks_total", loops: \.credentialChecks, "Credentials of requests checked."),
    Metric("accept_waits_total", loops: \.transport.acceptWaits, "Times accepting waited for its rate."),
    Metric("limit_hits_total", by: "limit", "Refusals and closed connections, by limit.") { reading in
      let together = reading.sum(\.transport.overflowedTogether)
      // The hub counts running queries, a loop the answers that it writes.
      let ofLoops = LimitHit.allCases.map { limit in
        let ofHub = limit == .queriesPerIdentity ? reading.hub.hits(ShareLimit.queriesPerIdentity) : 0
        return ("\(limit.name)", reading.sum { $0.hits(limit) } + ofHub)
      }
      let ofHub = ShareLimit.allCases.filter { $0 != .queriesPerIdentity }.map { limit in
        ("\(limit.name)", reading.hub.hits(limit))
      }
      let ofOutboxes = [
        ("outbox_bytes", reading.sum(\.transport.overflowed) - together), ("all_outbox_bytes", together),
      ]
      return ofLoops + ofHub + ofOutboxes
    },
    Metric("limit", by: "limit", "Configured limits that are one number; 0 for none.") { reading in
      let limits = reading.tables.limits
      return [
        ("\(LimitHit.sessions.name)", UInt64(reading.tables.sessions)),
        ("\(LimitHit.connectionsPerAddress.name)", UInt64(limits.connectionsPerAddress)),
        ("\(LimitHit.requestRate.name)", UInt64(limits.requestRate)),
        ("\(LimitHit.incompleteBytes.name)", UInt64(limits.incompleteBytes)),
        ("\(LimitHit.messageBytes.name)", UInt64(limits.messageBytes)),
        ("\(LimitHit.fragments.name)", UInt64(limits.fragments)),
        ("\(LimitHit.subscriptions.name)", UInt64(limits.subscriptionsPerSession)),
        ("outbox_bytes", UInt64(limits.outboxBytesPerSession)), ("all_outbox_bytes", UInt64(limits.outboxBytes)),
      ]
    },
    Metric("incomplete_bytes", "Bytes of incomplete input, beyond each peer's free allowance.") { $0.incompleteBytes },
    Metric("client_addresses", "Addresses that are counted or remembered.") { $0.tables.addresses },
  ]

  private static let fixes: [Metric] = [
    Metric("fixes_total", by: "outcome", "Fixes by outcome.") { reading in
      let hub = reading.hub
      let outcomes = [
        ("accepted", hub.fixesAccepted), ("history", hub.fixesHistory), ("duplicate", hub.fixesDuplicate),
        ("held", hub.fixesHeld), ("forbidden", hub.fixesForbidden), ("orphaned", hub.fixesOrphaned),
        ("unreadable", hub.fixesUnreadable), ("put_off", hub.fixesPutOff),
      ]
      return outcomes
        + Tracker.Refusal.allCases.map { ("refused_\($0.name)", hub.fixesRefused[Int($0.rawValue)]) }
    },
    Metric(
      "fixes_behind_clock_total", hub: \.fixesBehindClock,
      "Fixes taken as history because their driver's clock was set back and is not accepted yet."),
    Metric(
      "clocks_believed_total", hub: \.clocksBelieved, "Drivers' clocks that were set back and accepted."),
    Metric("fixes_absorbed_total", by: "reason", "Accepted fixes whose place was not used.") { reading in
      Tracker.Refusal.allCases.map { ("\($0.name)", reading.hub.fixesAbsorbed[Int($0.rawValue)]) }
    },
    Metric(
      "phone_fixes_total", by: "app", and: "outcome", "Fixes in the formats of phone apps; `ignored` are requests."
    ) { reading in
      PhoneFormat.allCases.flatMap { app in
        PhoneOutcome.allCases.map { outcome in
          ("\(app.name)", "\(outcome.name)", reading.hub.phoneFixes[Int(app.rawValue)][Int(outcome.rawValue)])
        }
      }
    },
    Metric("fixes_received_total", hub: \.fixesReceived, "Fixes received."),
    Metric(
      "fix_speeds_ignored_total", hub: \.speedsIgnored,
      "Fixes whose impossible speed was ignored."),
    Metric("fixes_waiting", hub: \.fixesWaiting, "Fixes in batches that wait for their turn or for the journal."),
  ]

  private static let events: [Metric] = [
    Metric(
      "positions_published_total", hub: \.positionsPublished, "Positions published: one for each accepted fix."),
    Metric("events_total", hub: \.eventsPublished, "Numbered events published."),
    Metric("deliveries_total", hub: \.deliveries, "Publications handed to loops."),
    Metric("eta_updates_total", hub: \.etaUpdates, "ETA updates published."),
    Metric(
      "routes_not_followed_total", hub: \.routesNotFollowed,
      "Routes of trips that are not followed: there was no room, or they end far from the dropoff."),
    Metric("trip_moves_total", hub: \.tripMoves, "Moves of trips."),
    Metric("trip_moves_refused_total", hub: \.tripMovesRefused, "Refused moves and changes of trips."),
    Metric("trip_changes_total", hub: \.tripChanges, "Changes of pickup, dropoff or route."),
    Metric("offers_total", by: "outcome", "Offers of trips to drivers that have ended.") { reading in
      OfferOutcome.allCases.map { ("\($0.name)", reading.hub.offers[Int($0.rawValue)]) }
    },
    Metric("trips_unserved_total", hub: \.tripsUnserved, "Trips offered that no driver accepted."),
    Metric("token_requests_total", by: "outcome", "Requests for tokens that the hub makes.") { reading in
      TokenOutcome.allCases.map { ("\($0.name)", reading.hub.tokens[Int($0.rawValue)]) }
    },
    Metric(
      "refresh_tokens_reused_total", hub: \.tokensReused,
      "Refresh tokens that were used a second time: all tokens of their families have ended."),
    Metric(
      "audit_entries_left_out_total", hub: \.auditLeftOut,
      "Entries of the audit trail that were not written: more than 10 in a second of one, or no journal."),
    Metric("notifications_posted_total", hub: \.notificationsPosted, "Notifications that were posted to a channel."),
    Metric("fence_events_total", by: "kind", "Events about fences, by kind.") { reading in
      [Notification.Kind.fenceEnter, .fenceExit, .fenceDwell, .hazard, .speeding].map {
        ("\($0.name)", reading.hub.fenceEvents[Int($0.rawValue)])
      }
    },
    Metric(
      "fences_looked_at_total", hub: \.fencesLookedAt,
      "Fences tested against a position."),
    Metric("session_replacements_total", hub: \.replacements, "Driver sessions replaced by newer ones."),
    Metric("sampling_advice_total", by: "reason", "Advice to drivers on how often to send, by reason.") { reading in
      SamplingReason.allCases.map { ("\($0.name)", reading.hub.samplingAdvised[Int($0.rawValue)]) }
    },
  ]

  private static let tables: [Metric] = [
    Metric("table_entries", by: "table", "Entries of tables; drivers_online are among the drivers.") { reading in
      ofTables(reading) { UInt64(max(0, $0.entries)) } + [
        ("drivers_online", UInt64(max(0, reading.hub.driversOnline)))
      ]
    },
    Metric("table_capacity", by: "table", "Capacity of tables, in entries.") { reading in
      ofTables(reading) { UInt64(max(0, $0.capacity)) }
    },
    Metric("table_limit_hits_total", by: "table", "Times that a full table refused an entry.") {
      ofTables($0, \.hits)
    },
  ]

  private static func ofTables(
    _ reading: MetricsReading, _ value: (TableFigures) -> UInt64
  ) -> [(String, UInt64)] {
    reading.tables.figures(reading.loops, reading.hub).map { ("\($0.name)", value($0)) }
  }

  private static let queries: [Metric] = [
    Metric("queries_total", hub: \.searches, "Queries for drivers nearby or within, answered."),
    Metric("queries_continued_total", hub: \.searchesContinued, "Queries for drivers that took more than one turn."),
    Metric(
      "answers_continued_total", loops: \.answersContinued,
      "Answers to queries for drivers that were written over more than one turn of a loop."),
    Metric("queries_refused_total", "Queries refused because too many were under way.") {
      $0.hub.searchesRefused + $0.sum(\.queriesRefused)
    },
  ]

  private static let storage: [Metric] = [
    Metric("journal_groups_total", "Groups stored: a write and an fdatasync each.") {
      $0.journal?.commit.counters.groups
    },
    Metric("journal_turns_total", "Turns of the hub whose records were stored.") {
      $0.journal?.commit.counters.submissions
    },
    Metric("journal_bytes_total", "Bytes of records stored.") { $0.journal?.commit.counters.bytes },
    Metric("journal_busy_seconds_total", "Time spent writing and waiting for the disk.") {
      $0.journal?.commit.counters.busyNanoseconds
    },
    Metric("journal_commit_seconds", bounds: latencyBounds, "Time of each group: write and fdatasync.") {
      $0.journal?.commit.counters.commitTimes
    },
    Metric("journal_disk_free_bytes", "Bytes free on the journal's disk, some seconds old.") {
      $0.journal?.commit.counters.freeBytes
    },
    Metric("journal_full_total", "Times that the disk was full.") { $0.journal?.commit.counters.timesFull },
    Metric("journal_condition", "0 good, 1 full or its directory gone, 2 stopped after a failed write.") {
      $0.journal?.commit.currentCondition.rawValue
    },
    maintenance("journal_snapshots_total", \.snapshots, "Snapshots written while the hub ran."),
    maintenance(
      "journal_snapshot_seconds_total", \.snapshotNanoseconds,
      "Time that snapshots took, on a thread of low priority."),
    maintenance("journal_maintenance_failures_total", \.failures, "Failed snapshots, indexes and deletions."),
    maintenance("journal_segments_deleted_total", \.segmentsDeleted, "Segments deleted by age or size."),
    maintenance("journal_segments", \.segments, "Segments on the disk."),
    maintenance("journal_disk_bytes", \.bytes, "Bytes of segments, indexes and snapshots on the disk."),
    Metric("journal_held_outputs", hub: \.heldForStorage, stored: true, "Answers and events that wait for the disk."),
    Metric(
      "journal_refused_total", hub: \.refusedForStorage, stored: true,
      "Moves, statuses and batches refused because nothing could be stored."),
    Metric(
      "journal_fixes_not_stored_total", hub: \.fixesNotStored, stored: true,
      "Live fixes not stored because there was no room."),
    Metric(
      "journal_lookups_total", hub: \.lookups, stored: true, "Batches whose older fixes were looked up in the journal."
    ),
    Metric(
      "journal_presence_dropped_total", hub: \.eventsNotStored, stored: true,
      "Attempts to publish driver_offline while nothing could be stored; each is repeated."),
  ]

  private static func maintenance<Number: BinaryInteger & SendableMetatype>(
    _ name: String, _ path: any KeyPath<MaintenanceCounters, Number> & Sendable, _ help: String
  ) -> Metric {
    Metric(name, help) { reading in reading.journal.map { $0.maintenance.withLock { $0[keyPath: path] } } }
  }

  private static let history: [Metric] = [
    Metric("history_questions_total", "Queries of the journal's history.") { $0.history?.counters.asked },
    Metric("history_refused_total", "Requests refused because too many history queries were waiting.") {
      $0.history == nil ? nil : $0.sum(\.historyRefused)
    },
    Metric("history_busy_seconds_total", "Time spent answering history queries.") {
      $0.history?.counters.busyNanoseconds
    },
    Metric("history_answer_bytes", "Bytes of history answers not sent yet.") { $0.history?.counters.unsentBytes },
  ]

  /// Upper bounds of the latency buckets, in microseconds.
  private static let latencyBounds: [UInt64] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
  ]

  private static let process: [Metric] = [
    Metric("build_info", by: "version", and: "commit", "Always 1; the labels are the version and the commit.") {
      [(Release.name, $0.commit, 1 as UInt64)]
    },
    Metric("draining", "1 while it is stopping.") { $0.isDraining ? 1 as UInt64 : 0 },
    Metric("reload_successful", by: "what", "1 if the last read, at the start or on SIGHUP, succeeded.") {
      $0.reloads.map { ("\($0.what)", $0.isSuccessful ? 1 as UInt64 : 0) }
    },
    Metric("reload_timestamp_seconds", by: "what", "When the version in use was read, in seconds since 1970.") {
      $0.reloads.map { ("\($0.what)", UInt64($0.timestamp / 1000)) }
    },
    Metric(
      "tls_certificate_not_after_timestamp_seconds",
      "When the certificate, or one of its chain, expires, in seconds since 1970."
    ) { $0.certificateEnd },
    Metric(name: "process_start_time_seconds", help: "When it was started, in seconds since 1970.") {
      [("", nil, .seconds(Double($0.started) / 1000))]
    },
    Metric("process_open_fds", "Descriptors that the process has open; from Linux 6.2 on.") { $0.openDescriptors },
    Metric("process_max_fds", "Descriptors that the process may have open.") { $0.openFileLimit },
    Metric("process_resident_memory_bytes", "Resident memory of the process.") { $0.residentBytes },
    Metric("process_cpu_seconds_total", "CPU time of the process, user and system.") { $0.cpuNanoseconds },
    Metric(
      "delivery_seconds", bounds: latencyBounds,
      "From reading a fix, or the end of an area's second, to having written its publications.",
      read: \.latency),
    Metric(
      "ack_seconds", by: "type", AckOrigin.Kind.allCases.map(\.name.description),
      "From taking a message, or the first fix of a batch, to its ack: it is stored.", loops: \.ackTimes),
    Metric(
      "http_request_seconds", by: "route", HTTPFamily.allCases.map(\.name),
      "From having a whole request to its answer, by endpoints; not those of sockets and streams.",
      loops: \.requestTimes),
  ]
}
