// The sentinels of a ledger: they watch its nodes, elect another master when it dies, and name it (redis.io, "Sentinel
// client spec").
//
// All are asked, more often while the ledger is down: the node that more than half of them name is tried, and must
// itself say that it is the master (RedisLedger.swift). So a sentinel that is cut off from the others decides nothing,
// and no dead node delays the others.

struct Sentinels {
  private struct Sentinel {
    let link: LinkID
    var isAsked = false
    /// Whether it has answered, or cannot be reached.
    var isTried = false
    /// Its last answer.
    var master: EngineAddress?
  }

  private let links: RedisLinks
  private let question: RedisCommand
  /// The scheme of the nodes' addresses: they use TLS if the sentinels do.
  private let scheme: String
  private var sentinels: [Sentinel]
  private var asksAt = Int64.min
  private var fault = ""

  /// `role` has the sentinels' own credentials.
  init(_ links: RedisLinks, _ addresses: [EngineAddress], name: String, role: RedisRole) {
    self.links = links
    scheme = addresses.contains { $0.isSecure } ? "rediss" : "redis"
    question = .words(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name].map { Array($0.utf8) })
    sentinels = addresses.map { Sentinel(link: links.add(role, to: $0)) }
  }

  /// Takes answers, and asks again when due. `isUrgent`: the ledger is down. Gives why no master is known, if that has
  /// changed and all have been tried.
  mutating func turn(isUrgent: Bool) -> String? {
    var isNews = false
    for index in sentinels.indices {
      for event in links.takeEvents(of: sentinels[index].link) where take(event, from: index) { isNews = true }
    }
    if links.now >= asksAt {
      asksAt = links.now + (isUrgent ? links.limits.sentinelTimeAway : links.limits.sentinelTime)
      for index in sentinels.indices where !sentinels[index].isAsked {
        sentinels[index].isAsked = links.submit(question, ticket: 0, to: sentinels[index].link)
      }
    }
    return isNews && sentinels.allSatisfy { $0.isTried && $0.master == nil } ? fault : nil
  }

  /// Takes a sentinel's event; true for an answer, or the end of a connection.
  private mutating func take(_ event: RedisEvent, from index: Int) -> Bool {
    switch event {
    case .ready: asksAt = .min
    case .reply(_, let value):
      (sentinels[index].isAsked, sentinels[index].isTried) = (false, true)
      sentinels[index].master = master(value)
      return true
    case .unknown: sentinels[index].isAsked = false
    case .lost(let lost):
      (sentinels[index].master, sentinels[index].isTried) = (nil, true)
      fault = "\(LedgerAddress.noSentinel): \(lost)"
      return true
    case .message: break
    }
    return false
  }

  private mutating func master(_ value: RESPValue) -> EngineAddress? {
    guard case .array(let parts) = value, parts.count == 2, let host = parts[0].text, let port = parts[1].text else {
      fault = "a sentinel knows no such master: \(value)"
      return nil
    }
    guard let node = EngineAddress("\(scheme)://\(host):\(port)") else {
      fault = "a sentinel names \(host):\(port): set announce-ip to a numeric address"
      return nil
    }
    return node
  }

  /// The node named by more than half of the sentinels; where there is none, `current`. Without one, the node named by
  /// most, once all have been tried.
  func master(orElse current: EngineAddress?) -> EngineAddress? {
    var votes: [EngineAddress: Int] = [:]
    for case let node? in sentinels.map(\.master) { votes[node, default: 0] += 1 }
    let most = votes.values.max() ?? 0
    let isDecided = 2 * most > sentinels.count || current == nil && sentinels.allSatisfy(\.isTried)
    return isDecided ? sentinels.lazy.compactMap(\.master).first { votes[$0] == most } : current
  }
}
