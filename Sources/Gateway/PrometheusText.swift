// The metrics page: Prometheus' text format, version 0.0.4.
import HubBytes
import HubCore
import HubMessages
import HubRuntime

enum PrometheusText {
  static func write(
    loops: [LoopCounters], hub: HubCounters, journal: JournalQueue? = nil, history: HistoryReader? = nil,
    tables: TableBounds, residentBytes: Int, incompleteBytes: Int = 0
  ) -> [UInt8] {
    var page = Page()
    writeSessions(loops, &page)
    writeTLS(loops, &page)
    writeTraffic(loops, &page)
    writeCompression(loops, &page)
    writeProblems(loops, &page)
    writeDoor(loops, hub, &page)
    page.family("locationhub_incomplete_bytes", "gauge", "Input that is not complete, beyond what each peer has free.")
    page.sample("locationhub_incomplete_bytes", UInt64(max(0, incompleteBytes)))
    page.family("locationhub_client_addresses", "gauge", "Addresses that are counted or remembered.")
    page.sample("locationhub_client_addresses", UInt64(tables.addresses))
    writeHub(hub, &page)
    writeTables(tables.figures(loops, hub), hub, &page)
    writeQueries(loops, hub, &page)
    if let journal { writeJournal(journal, hub, &page) }
    if let history { writeHistory(history.counters, loops, &page) }
    page.family("locationhub_resident_bytes", "gauge", "Resident memory of the process.")
    page.sample("locationhub_resident_bytes", UInt64(residentBytes))
    writeLatency(loops, &page)
    return page.text.array()
  }

  private static func writeSessions(_ loops: [LoopCounters], _ page: inout Page) {
    page.family("locationhub_connections", "gauge", "Open TCP connections.")
    page.sample("locationhub_connections", sum(loops) { UInt64($0.connections) })
    page.family("locationhub_sessions", "gauge", "Open WebSocket sessions by role.")
    for role in Role.allCases {
      page.sample(
        "locationhub_sessions", ("role", "\(role.name)"), sum(loops) { UInt64($0.sessions[Int(role.rawValue)]) })
    }
    page.family("locationhub_subscriptions", "gauge", "Subscriptions of open sessions.")
    page.sample("locationhub_subscriptions", sum(loops) { UInt64($0.subscriptions) })
    page.family("locationhub_subscriptions_ended_total", "counter", "Subscriptions that the hub ended, by reason.")
    for reason in Unsubscribed.Reason.allCases where reason != .asked {
      page.sample(
        "locationhub_subscriptions_ended_total", ("reason", "\(reason.name)"),
        sum(loops) { $0.subscriptionsEnded[Int(reason.rawValue)] })
    }
    page.counter("locationhub_sessions_opened_total", "WebSocket sessions opened.", sum(loops) { $0.sessionsOpened })
    page.counter("locationhub_handshakes_refused_total", "Upgrades refused.", sum(loops) { $0.handshakesRefused })
    page.counter("locationhub_accepted_total", "TCP connections accepted.", sum(loops) { $0.transport.accepted })
  }

  private static func writeTLS(_ loops: [LoopCounters], _ page: inout Page) {
    page.family("locationhub_tls_handshakes_total", "counter", "TLS handshakes by outcome.")
    let resumed = sum(loops) { $0.transport.tlsHandshakesResumed }
    page.sample(
      "locationhub_tls_handshakes_total", ("outcome", "full"), sum(loops) { $0.transport.tlsHandshakes } - resumed)
    page.sample("locationhub_tls_handshakes_total", ("outcome", "resumed"), resumed)
    page.sample(
      "locationhub_tls_handshakes_total", ("outcome", "failed"), sum(loops) { $0.transport.tlsHandshakesFailed })
    page.counter(
      "locationhub_tls_handshakes_deferred_total", "Times that a handshake waited for the next turn of its loop.",
      sum(loops) { $0.transport.tlsHandshakesDeferred })
    page.counter(
      "locationhub_tls_failures_total", "Connections that broke TLS after their handshake.",
      sum(loops) { $0.transport.tlsFailures })
  }

  private static func writeTraffic(_ loops: [LoopCounters], _ page: inout Page) {
    page.counter("locationhub_messages_in_total", "Messages from clients.", sum(loops) { $0.messagesIn })
    page.counter("locationhub_replies_out_total", "Answers to clients.", sum(loops) { $0.repliesOut })
    page.counter(
      "locationhub_publications_out_total", "Publications sent to subscribers.", sum(loops) { $0.publicationsOut })
    page.counter("locationhub_positions_out_total", "Positions among them.", sum(loops) { $0.positionsOut })
    page.counter("locationhub_area_updates_out_total", "Updates of cells among them.", sum(loops) { $0.areaUpdatesOut })
    page.counter(
      "locationhub_area_updates_skipped_total",
      "Updates that a session was too slow for: it gets the whole cell later.",
      sum(loops) { $0.areaUpdatesSkipped })
    page.counter("locationhub_whole_areas_out_total", "Whole cells sent.", sum(loops) { $0.wholeAreasOut })
    page.counter(
      "locationhub_encodes_total", "Publications encoded, once for all subscribers.", sum(loops) { $0.encodes })
    page.counter("locationhub_recovered_total", "Missed events sent on subscribing again.", sum(loops) { $0.recovered })
    page.counter("locationhub_read_bytes_total", "Bytes read.", sum(loops) { $0.transport.bytesRead })
    page.counter("locationhub_written_bytes_total", "Bytes written.", sum(loops) { $0.transport.bytesWritten })
    page.counter("locationhub_reads_total", "Reads that gave bytes.", sum(loops) { $0.transport.reads })
    page.counter("locationhub_writes_total", "Writes.", sum(loops) { $0.transport.writes })
    page.counter("locationhub_turns_total", "Turns of event loops.", sum(loops) { $0.transport.turns })
    page.counter(
      "locationhub_standstills_total", "How often a loop did not turn for more than a second.",
      sum(loops) { $0.standstills })
    page.counter(
      "locationhub_turns_visited_total", "Turns of a loop that slept, run by the thread of another.",
      sum(loops) { $0.transport.visits })
    page.counter(
      "locationhub_turns_cut_total", "Turns that left sockets to the next one, having read enough.",
      sum(loops) { $0.transport.turnsCut })
  }

  private static func writeCompression(_ loops: [LoopCounters], _ page: inout Page) {
    page.counter(
      "locationhub_compressed_sessions_opened_total", "WebSocket sessions that agreed to compression.",
      sum(loops) { $0.compressedSessionsOpened })
    page.family("locationhub_binary_sessions", "gauge", "Open sessions that speak locationhub.v1.binary.")
    page.sample("locationhub_binary_sessions", sum(loops) { UInt64($0.binarySessions) })
    page.counter(
      "locationhub_binary_names_total", "Names of channels said to binary subscribers.",
      sum(loops) { $0.namesSent })
    page.family("locationhub_compression_contexts", "gauge", "Sessions that keep deflate contexts of their own.")
    page.sample("locationhub_compression_contexts", sum(loops) { UInt64($0.compressionContexts) })
    page.counter(
      "locationhub_deflates_total", "Messages compressed, a publication once for all subscribers.",
      sum(loops) { $0.deflates })
    page.counter(
      "locationhub_deflate_input_bytes_total", "Bytes of these before.", sum(loops) { $0.deflatedBytesIn })
    page.counter(
      "locationhub_deflate_output_bytes_total", "Bytes of these after.", sum(loops) { $0.deflatedBytesOut })
    page.counter("locationhub_inflates_total", "Compressed messages from clients.", sum(loops) { $0.inflates })
    page.counter(
      "locationhub_inflate_output_bytes_total", "Bytes of these when inflated.", sum(loops) { $0.inflatedBytes })
  }

  private static func writeProblems(_ loops: [LoopCounters], _ page: inout Page) {
    page.family("locationhub_dropped_total", "counter", "What was not delivered, by reason.")
    page.sample("locationhub_dropped_total", ("reason", "conflated_slow"), sum(loops) { $0.transport.conflated })
    page.sample("locationhub_dropped_total", ("reason", "conflated_interval"), sum(loops) { $0.conflatedByInterval })
    page.sample("locationhub_dropped_total", ("reason", "overflow"), sum(loops) { $0.transport.dropped })
    page.family("locationhub_errors_total", "counter", "Errors told to clients, by code.")
    for code in ErrorCode.allCases {
      page.sample("locationhub_errors_total", ("code", "\(code.name)"), sum(loops) { $0.errors[Int(code.rawValue)] })
    }
    page.family("locationhub_closes_total", "counter", "Sessions closed by the hub, by close code.")
    for (code, count) in merged(loops, \.closesSent) {
      page.sample("locationhub_closes_total", ("code", String(code)), count)
    }
    page.family("locationhub_http_responses_total", "counter", "HTTP responses by status.")
    for (status, count) in merged(loops, \.responses) {
      page.sample("locationhub_http_responses_total", ("status", String(status)), count)
    }
    page.counter("locationhub_protocol_errors_total", "Broken WebSocket frames.", sum(loops) { $0.protocolErrors })
    page.counter("locationhub_bad_requests_total", "Broken HTTP requests.", sum(loops) { $0.badRequests })
    page.counter(
      "locationhub_request_timeouts_total", "Requests that never became complete.", sum(loops) { $0.requestTimeouts })
    page.counter("locationhub_rate_pauses_total", "Times reading stopped for the rate.", sum(loops) { $0.ratePauses })
    page.counter(
      "locationhub_turn_waits_total", "Times a session waited for the next turn: the work of one was done.",
      sum(loops) { $0.turnWaits })
    page.counter(
      "locationhub_accept_pauses_total", "Times accepting stopped for want of descriptors.",
      sum(loops) { $0.transport.acceptPauses })
    page.counter(
      "locationhub_connections_refused_total", "Connections over the limit.", sum(loops) { $0.transport.refused })
    page.family("locationhub_outbox_bytes", "gauge", "Unsent bytes of slow sessions.")
    page.sample("locationhub_outbox_bytes", sum(loops) { UInt64($0.transport.outboxBytes) })
  }

  private static func writeDoor(_ loops: [LoopCounters], _ hub: HubCounters, _ page: inout Page) {
    page.counter(
      "locationhub_origins_refused_total", "Requests of web pages that may not.", sum(loops) { $0.originsRefused })
    page.counter(
      "locationhub_credential_checks_total", "Credentials of requests checked.", sum(loops) { $0.credentialChecks })
    page.counter(
      "locationhub_accept_waits_total", "Times accepting waited for its rate.", sum(loops) { $0.transport.acceptWaits })
    page.family("locationhub_limit_hits_total", "counter", "Times that somebody was refused or sent away, by limit.")
    for limit in LimitHit.allCases {
      // The hub counts queries under way, a loop the answers that it writes.
      let ofHub = limit == .queriesPerIdentity ? hub.hits(ShareLimit.queriesPerIdentity) : 0
      page.sample("locationhub_limit_hits_total", ("limit", "\(limit.name)"), sum(loops) { $0.hits(limit) } + ofHub)
    }
    for limit in ShareLimit.allCases where limit != .queriesPerIdentity {
      page.sample("locationhub_limit_hits_total", ("limit", "\(limit.name)"), hub.hits(limit))
    }
    let together = sum(loops) { $0.transport.overflowedTogether }
    page.sample(
      "locationhub_limit_hits_total", ("limit", "outbox_bytes"), sum(loops) { $0.transport.overflowed } - together)
    page.sample("locationhub_limit_hits_total", ("limit", "all_outbox_bytes"), together)
  }

  private static func writeHub(_ hub: HubCounters, _ page: inout Page) {
    page.family("locationhub_fixes_total", "counter", "Fixes by outcome.")
    let outcomes: [(String, UInt64)] = [
      ("accepted", hub.fixesAccepted), ("history", hub.fixesHistory), ("duplicate", hub.fixesDuplicate),
      ("held", hub.fixesHeld), ("forbidden", hub.fixesForbidden), ("orphaned", hub.fixesOrphaned),
      ("unreadable", hub.fixesUnreadable), ("put_off", hub.fixesPutOff),
    ]
    for (outcome, count) in outcomes { page.sample("locationhub_fixes_total", ("outcome", outcome), count) }
    for refusal in Tracker.Refusal.allCases {
      page.sample(
        "locationhub_fixes_total", ("outcome", "refused_\(refusal.name)"), hub.fixesRefused[Int(refusal.rawValue)])
    }
    page.counter(
      "locationhub_fixes_behind_clock_total",
      "History of drivers whose clock was ahead and was set right, and is not believed yet.", hub.fixesBehindClock)
    page.counter(
      "locationhub_clocks_believed_total", "Clocks of drivers that were set back and are believed.", hub.clocksBelieved)
    page.family("locationhub_fixes_absorbed_total", "counter", "Accepted fixes whose place was not used.")
    for reason in Tracker.Refusal.allCases {
      page.sample(
        "locationhub_fixes_absorbed_total", ("reason", "\(reason.name)"), hub.fixesAbsorbed[Int(reason.rawValue)])
    }
    page.counter("locationhub_fixes_received_total", "Fixes that came.", hub.fixesReceived)
    page.counter(
      "locationhub_fix_speeds_ignored_total", "Fixes with a speed that no vehicle has, taken as without one.",
      hub.speedsIgnored)
    page.counter(
      "locationhub_positions_published_total", "Positions published: one for each accepted fix.", hub.positionsPublished
    )
    page.counter("locationhub_events_total", "Numbered events published.", hub.eventsPublished)
    page.counter("locationhub_deliveries_total", "Publications handed to loops.", hub.deliveries)
    page.counter("locationhub_eta_updates_total", "ETAs that were news.", hub.etaUpdates)
    page.counter(
      "locationhub_routes_not_followed_total", "Routes of trips that there was no room to follow.",
      hub.routesNotFollowed)
    page.counter("locationhub_trip_moves_total", "Moves of trips.", hub.tripMoves)
    page.counter("locationhub_trip_moves_refused_total", "Refused moves and changes of trips.", hub.tripMovesRefused)
    page.counter("locationhub_trip_changes_total", "Changes of pickup, dropoff or route.", hub.tripChanges)
    page.counter(
      "locationhub_notifications_posted_total", "Notifications that were posted to a channel.",
      hub.notificationsPosted)
    writeFences(hub, &page)
    page.counter("locationhub_session_replacements_total", "Driver sessions replaced by newer ones.", hub.replacements)
    page.family("locationhub_sampling_told_total", "counter", "Times drivers were told how often to send, by why.")
    for reason in SamplingReason.allCases {
      page.sample(
        "locationhub_sampling_told_total", ("reason", "\(reason.name)"), hub.samplingTold[Int(reason.rawValue)])
    }
    page.family("locationhub_fixes_waiting", "gauge", "Fixes in batches that wait for their turn or for the journal.")
    page.sample("locationhub_fixes_waiting", UInt64(max(0, hub.fixesWaiting)))
  }

  private static func writeTables(_ tables: [TableFigures], _ hub: HubCounters, _ page: inout Page) {
    page.family("locationhub_table_entries", "gauge", "Entries of tables; drivers_online are among the drivers.")
    for table in tables {
      page.sample("locationhub_table_entries", ("table", "\(table.name)"), UInt64(max(0, table.entries)))
    }
    page.sample("locationhub_table_entries", ("table", "drivers_online"), UInt64(max(0, hub.driversOnline)))
    page.family("locationhub_table_capacity", "gauge", "Entries that tables may have.")
    for table in tables {
      page.sample("locationhub_table_capacity", ("table", "\(table.name)"), UInt64(max(0, table.capacity)))
    }
    page.family(
      "locationhub_table_limit_hits_total", "counter", "Times that a table was full for who wanted a place in it.")
    for table in tables {
      page.sample("locationhub_table_limit_hits_total", ("table", "\(table.name)"), table.hits)
    }
  }

  private static func writeQueries(_ loops: [LoopCounters], _ hub: HubCounters, _ page: inout Page) {
    page.counter("locationhub_queries_total", "Queries for drivers nearby or within, answered.", hub.searches)
    page.counter(
      "locationhub_queries_continued_total", "Of these, such that took more than one turn.", hub.searchesContinued)
    page.counter(
      "locationhub_answers_continued_total", "Answers to them that were written over more than one turn of a loop.",
      sum(loops) { $0.answersContinued })
    page.counter(
      "locationhub_queries_refused_total", "Queries refused because too many were under way.",
      hub.searchesRefused + sum(loops) { $0.queriesRefused })
  }

  private static func writeFences(_ hub: HubCounters, _ page: inout Page) {
    page.family("locationhub_fence_events_total", "counter", "Events about fences, by kind.")
    for kind in [Notification.Kind.fenceEnter, .fenceExit, .fenceDwell, .hazard, .speeding] {
      page.sample("locationhub_fence_events_total", ("kind", "\(kind.name)"), hub.fenceEvents[Int(kind.rawValue)])
    }
    page.counter(
      "locationhub_fences_looked_at_total", "Fences that positions were held against: those with a part of their cell.",
      hub.fencesLookedAt)
  }

  private static func writeJournal(_ journal: JournalQueue, _ hub: HubCounters, _ page: inout Page) {
    let counters = journal.commit.counters
    page.counter("locationhub_journal_groups_total", "Groups stored: a write and an fdatasync each.", counters.groups)
    page.counter("locationhub_journal_turns_total", "Turns of the hub whose records they held.", counters.submissions)
    page.counter("locationhub_journal_bytes_total", "Bytes of records stored.", counters.bytes)
    page.counter(
      "locationhub_journal_busy_seconds_total", "Time spent writing and waiting for the disk.",
      nanoseconds: counters.busyNanoseconds)
    page.counter("locationhub_journal_full_total", "Times that the disk was full.", counters.timesFull)
    page.family(
      "locationhub_journal_condition", "gauge", "0 good, 1 full or its directory gone, 2 stopped after a failed write.")
    page.sample("locationhub_journal_condition", UInt64(journal.commit.currentCondition.rawValue))
    writeKeeping(journal.keeping.withLock { $0 }, &page)
    page.family("locationhub_journal_held_outputs", "gauge", "Answers and events that wait for the disk.")
    page.sample("locationhub_journal_held_outputs", UInt64(max(0, hub.heldForStorage)))
    page.counter(
      "locationhub_journal_refused_total", "Moves, statuses and batches refused for want of storage.",
      hub.refusedForStorage)
    page.counter(
      "locationhub_journal_fixes_not_stored_total", "Live fixes of which nothing was stored for want of room.",
      hub.fixesNotStored)
    page.counter(
      "locationhub_journal_lookups_total", "Batches whose older fixes were looked for in the journal.", hub.lookups)
    page.counter(
      "locationhub_journal_presence_dropped_total", "Presence events not made for want of storage.",
      hub.eventsNotStored)
  }

  private static func writeHistory(
    _ history: HistoryReader.Counters, _ loops: [LoopCounters], _ page: inout Page
  ) {
    page.counter("locationhub_history_questions_total", "Questions to the journal's past.", history.asked)
    page.counter(
      "locationhub_history_refused_total", "Requests refused because too many such questions wait.",
      sum(loops) { $0.historyRefused })
    page.counter(
      "locationhub_history_busy_seconds_total", "Time spent answering them.", nanoseconds: history.busyNanoseconds)
    page.family("locationhub_history_answer_bytes", "gauge", "Bytes of answers that were not sent yet.")
    page.sample("locationhub_history_answer_bytes", UInt64(max(0, history.unsentBytes)))
  }

  private static func writeKeeping(_ keeping: KeepingCounters, _ page: inout Page) {
    page.counter("locationhub_journal_snapshots_total", "Snapshots written while the hub ran.", keeping.snapshots)
    page.counter(
      "locationhub_journal_snapshot_seconds_total", "Time that they took, on a thread of low priority.",
      nanoseconds: keeping.snapshotNanoseconds)
    page.counter(
      "locationhub_journal_keeping_failures_total", "Failed snapshots, indexes and deletions.", keeping.failures)
    page.counter(
      "locationhub_journal_segments_deleted_total", "Segments deleted by age or size.", keeping.segmentsDeleted)
    page.family("locationhub_journal_segments", "gauge", "Segments on the disk.")
    page.sample("locationhub_journal_segments", UInt64(keeping.segments))
    page.family("locationhub_journal_disk_bytes", "gauge", "Bytes of segments, indexes and snapshots on the disk.")
    page.sample("locationhub_journal_disk_bytes", UInt64(keeping.bytes))
  }

  /// Upper bounds of the latency buckets, in microseconds.
  private static let latencyBounds: [UInt64] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
  ]

  private static func writeLatency(_ loops: [LoopCounters], _ page: inout Page) {
    var latency = LatencyHistogram()
    for loop in loops { latency.merge(loop.latency) }
    let name: StaticString = "locationhub_delivery_seconds"
    page.family(name, "histogram", "From reading a fix to having written what came of it.")
    for bound in latencyBounds {
      page.sample(
        "locationhub_delivery_seconds_bucket", ("le", "\(Double(bound) / 1e6)"), latency.count(upTo: bound))
    }
    page.sample("locationhub_delivery_seconds_bucket", ("le", "+Inf"), latency.count)
    page.sample("locationhub_delivery_seconds_sum", seconds: Double(latency.sum) / 1e6)
    page.sample("locationhub_delivery_seconds_count", latency.count)
  }

  private static func sum(_ loops: [LoopCounters], _ value: (LoopCounters) -> UInt64) -> UInt64 {
    loops.reduce(0) { $0 + value($1) }
  }

  private static func merged(
    _ loops: [LoopCounters], _ counts: (LoopCounters) -> [UInt16: UInt64]
  ) -> [(UInt16, UInt64)] {
    var all: [UInt16: UInt64] = [:]
    for loop in loops { all.merge(counts(loop), uniquingKeysWith: +) }
    return all.sorted { $0.key < $1.key }
  }
}

private struct Page: ~Copyable {
  var text = ByteBuffer(capacity: 16 * 1024)

  mutating func family(_ name: StaticString, _ type: StaticString, _ help: StaticString) {
    text.append("# HELP ")
    text.append(name)
    text.append(" ")
    text.append(help)
    text.append("\n# TYPE ")
    text.append(name)
    text.append(" ")
    text.append(type)
    text.append("\n")
  }

  mutating func counter(_ name: StaticString, _ help: StaticString, _ value: UInt64) {
    family(name, "counter", help)
    sample(name, value)
  }

  /// A time in seconds, the base unit of Prometheus.
  mutating func counter(_ name: StaticString, _ help: StaticString, nanoseconds: UInt64) {
    family(name, "counter", help)
    sample(name, seconds: Double(nanoseconds) / 1e9)
  }

  mutating func sample(_ name: StaticString, _ value: UInt64) {
    begin(name, nil)
    text.append(integer: value)
    text.append("\n")
  }

  mutating func sample(_ name: StaticString, _ label: (StaticString, String), _ value: UInt64) {
    begin(name, label)
    text.append(integer: value)
    text.append("\n")
  }

  mutating func sample(_ name: StaticString, seconds: Double) {
    begin(name, nil)
    text.append(double: seconds)
    text.append("\n")
  }

  private mutating func begin(_ name: StaticString, _ label: (StaticString, String)?) {
    text.append(name)
    if let (key, value) = label {
      text.append("{")
      text.append(key)
      text.append("=\"")
      text.append(utf8: value)
      text.append("\"}")
    }
    text.append(" ")
  }
}
