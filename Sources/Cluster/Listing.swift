// Pages of the drivers and of the trips of all hubs: each hub is asked for a page of its own (Asking.swift), and they
// are merged in the order of ListCursor.
//
//     a: 3 5 9 …          page of 4, in the order of the numbers: a3 b4 a5 b6      next: behind b6
//     b: 4 6 8 …          the next one: a is asked from 7 on, and so is b
//
// A page ends where the first hub that has more has sent no further: its next entries are not known. So every driver
// and trip is listed once, though each hub may cut its page at its size limit.
import HubBytes
import HubCore
import HubMessages

/// A page of one hub, with its own numbers.
struct HubPage {
  var hub = ""
  /// Each number is lower than the one before, as those of trips are; else higher.
  let isDescending: Bool
  var entries: [(number: UInt64, report: QueryResult)] = []
  /// The hub has nothing behind it.
  var isAtEnd = true

  init(isDescending: Bool) { self.isDescending = isDescending }

  init(_ list: DriverList) {
    self.init(isDescending: false)
    isAtEnd = list.cursor == nil
    entries = zip(list.indices ?? [], list.drivers).map { (UInt64($0), .driver($1)) }
  }

  init(_ page: TripPage) {
    self.init(isDescending: true)
    isAtEnd = page.next == nil
    entries = zip(page.numbers, page.trips).map { ($0, .trip($1)) }
  }
}

/// The pages of several hubs.
struct FleetPage {
  private struct Entry {
    let number: UInt64
    let hub: String
    let report: QueryResult

    func precedes(_ other: Entry, isDescending: Bool) -> Bool {
      if number != other.number { return isDescending ? number > other.number : number < other.number }
      return hub < other.hub
    }
  }

  private var entries: [Entry] = []
  /// The last entry up to which the entries of all hubs are known; nil where all are.
  private var bound: Entry?

  mutating func merge(_ page: HubPage) {
    entries += page.entries.map { Entry(number: $0.number, hub: page.hub, report: $0.report) }
    guard !page.isAtEnd,
      let last = page.entries.last.map({ Entry(number: $0.number, hub: page.hub, report: $0.report) })
    else { return }
    if bound.map({ last.precedes($0, isDescending: page.isDescending) }) ?? true { bound = last }
  }

  /// The first entries of all, in order, and where the next page begins; O(n log n) of the drivers or trips received.
  private func page(limit: Int, isDescending: Bool) -> (reports: [QueryResult], next: ListCursor?) {
    let settled = entries.filter { entry in bound.map { !$0.precedes(entry, isDescending: isDescending) } ?? true }
    let shown = settled.sorted { $0.precedes($1, isDescending: isDescending) }.prefix(limit)
    let hasMore = bound != nil || settled.count > limit
    return (shown.map(\.report), hasMore ? shown.last.map { ListCursor($0.number, hub: $0.hub) } : nil)
  }

  func drivers(of query: DriverListQuery) -> DriverList {
    let (reports, next) = page(limit: query.limit, isDescending: false)
    let drivers = reports.compactMap { if case .driver(let report) = $0 { report } else { nil } }
    return DriverList(drivers: drivers, cursor: next?.text(of: .drivers))
  }

  func trips(of query: TripListQuery) -> TripPage {
    let (reports, next) = page(limit: query.limit, isDescending: true)
    return TripPage(trips: reports.compactMap { if case .trip(let report) = $0 { report } else { nil } }, next: next)
  }
}

extension Asking {
  /// A peer asks for a page.
  mutating func receive(list reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    let question = FleetQuestion(
      session: .nobody, replyTo: nil,
      request: try reader.list(atMost: context.limits.listed), actor: .cluster, audience: .ops, grant: .granted)
    receive(asked: question, token, from: index)
  }

  mutating func receive(listed reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    var page = try reader.page(&context.peers[index].reader)
    page.hub = context.peers[index].name
    receive(answer: .page(page), of: token, from: index)
  }
}

/// Which list it is, in records.
private enum ListKind: UInt8 {
  case drivers = 0x64
  case trips = 0x74
}

extension ByteBuffer {
  /// A page of drivers, as a hub is asked for it.
  mutating func append(_ query: DriverListQuery, token: UInt64) {
    append(varint: token)
    append(ListKind.drivers.rawValue)
    append(varint: UInt64(query.limit))
    append(varint: UInt64(query.from))
    append(query.states.reduce(0) { $0 | 1 << $1.rawValue })
    append(utf8Run: query.prefix.description)
  }

  /// A page of trips.
  mutating func append(_ query: TripListQuery, token: UInt64) {
    append(varint: token)
    append(ListKind.trips.rawValue)
    append(varint: UInt64(query.limit))
    append(varint: min(query.below, UInt64(Int64.max)))
    append(TripStatus.allCases.reduce(0) { query.statuses.contains($1) ? $0 | 1 << $1.rawValue : $0 })
    append(varint: query.since.map { UInt64(max(0, $0.milliseconds)) + 1 } ?? 0)
    append(utf8Run: query.driverID?.description ?? "")
  }

  /// A hub's page, cut where it has so many bytes, but not before its first entry.
  mutating func append(_ page: HubPage, token: UInt64, atMost bytes: Int, at time: Timestamp) {
    append(varint: token)
    append((page.isDescending ? ListKind.trips : .drivers).rawValue)
    var written = ByteBuffer()
    var count = 0
    while count < page.entries.count, count == 0 || written.count < bytes {
      written.append(page.entries[count], at: time)
      count += 1
    }
    append(page.isAtEnd && count == page.entries.count ? 1 : 0)
    append(written.array())
  }

  private mutating func append(_ entry: (number: UInt64, report: QueryResult), at time: Timestamp) {
    append(varint: entry.number)
    append(.result(ResultReply(replyTo: ClusterOutput.unsolicited, result: entry.report)), at: time)
    // What lists have beside what the binary protocol says of one driver.
    guard case .driver(let report) = entry.report else { return }
    append(report.confidence.map { $0.rawValue + 1 } ?? 0)
    append(utf8Run: report.tripID?.description ?? "")
  }
}

extension ClusterFrameReader {
  /// What `append(_:token:)` wrote behind the token.
  fileprivate mutating func list(atMost most: Int) throws(ClusterFrameError) -> FleetRequest {
    guard let kind = ListKind(rawValue: try byte()), let limit = Int(exactly: try varint()), limit > 0 else {
      throw .message
    }
    switch kind {
    case .drivers:
      guard let from = Int(exactly: try varint()) else { throw .message }
      var query = DriverListQuery(limit: min(limit, most), from: from)
      let states = try byte()
      query.states = query.states.filter { states & 1 << $0.rawValue != 0 }
      guard let prefix = InlineText(String(decoding: try run(), as: UTF8.self)) else { throw .message }
      query.prefix = prefix
      return .drivers(query)
    case .trips:
      var query = TripListQuery(limit: min(limit, most), below: try varint())
      let statuses = try byte()
      query.statuses = TripStatusSet(TripStatus.allCases.filter { statuses & 1 << $0.rawValue != 0 })
      let since = try varint()
      guard since <= UInt64(Timestamp.accepted.upperBound.milliseconds) + 1 else { throw .message }
      query.since = since == 0 ? nil : Timestamp(milliseconds: Int64(since - 1))
      query.driverID = try optionalIdentifier()
      return .trips(query)
    }
  }

  /// A hub's page, whose messages `messages` reads.
  fileprivate mutating func page(_ messages: inout BinaryServerReader) throws(ClusterFrameError) -> HubPage {
    guard let kind = ListKind(rawValue: try byte()) else { throw .message }
    var page = HubPage(isDescending: kind == .trips)
    page.isAtEnd = try byte() != 0
    while !isAtEnd {
      let number = try varint()
      guard case .reply(.result(let reply))? = try message(&messages) else { throw .message }
      switch (kind, reply.result) {
      case (.drivers, .driver(var report)):
        let confidence = try byte()
        report.confidence = confidence == 0 ? nil : Confidence(rawValue: confidence - 1)
        report.tripID = try optionalIdentifier()
        page.entries.append((number, .driver(report)))
      case (.trips, .trip(let report)): page.entries.append((number, .trip(report)))
      case (.drivers, _), (.trips, _): throw .message
      }
    }
    return page
  }

  /// An empty run for none.
  private mutating func optionalIdentifier() throws(ClusterFrameError) -> Identifier? {
    let bytes = try run()
    if bytes.isEmpty { return nil }
    guard let id = Identifier(String(decoding: bytes, as: UTF8.self)) else { throw .message }
    return id
  }
}
