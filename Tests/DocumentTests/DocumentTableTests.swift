// The tables in protocol/ and deploy/ are those of the code. They are checked one after the other, since several are in
// one file and each may be written.
import HubCommandLine
import HubMessages
import Testing

@testable import HubCore
@testable import HubGateway
@testable import HubWebhooks
@testable import locationhub

@Suite(.serialized) struct DocumentTableTests {
  @Test("the specification's error codes are those of the code")
  func errorCodes() throws {
    let rows = ErrorCode.allCases.map { code in
      let statuses = HTTPRefusal.all.filter { $0.codes.contains(code) }.map { "\($0.status)" }
      return [
        "`\(code.name)`", "\(code.facts.meaning)", code.facts.retry.rawValue,
        statuses.isEmpty ? "–" : statuses.joined(separator: ", "), code.isBadMessage ? "yes" : "–",
      ]
    }
    let columns = ["code", "meaning", "send it again?", "over HTTP", "counts towards 4400"]
    try DocumentTable(name: "error codes", rows: [columns] + rows).check()
  }

  @Test("a code goes with its own status over HTTP, and each status that the hub refuses with is in the table")
  func statuses() {
    for code in ErrorCode.allCases {
      let refusals = HTTPRefusal.all.filter { $0.codes.contains(code) }
      #expect(refusals.isEmpty || refusals.contains { $0.status == code.facts.status }, "\(code)")
    }
    #expect(Set(HTTPRefusal.all.map(\.status)).count == HTTPRefusal.all.count)
    #expect(Set(ErrorCode.allCases.map { "\($0.name)" }).count == ErrorCode.allCases.count)
  }

  @Test("the specification's close codes are those of the code")
  func closeCodes() throws {
    let rows = CloseReason.allCases.map { ["\($0.rawValue)", "\($0.facts.meaning)", $0.facts.reconnect.rawValue] }
    try DocumentTable(name: "close codes", rows: [["code", "meaning", "connect again?"]] + rows).check()
  }

  @Test("the specification's statuses of refusals are those of the code")
  func refusals() throws {
    let rows = HTTPRefusal.all.map { refusal in
      [
        "\(refusal.status)", refusal.codes.map { "`\($0.name)`" }.joined(separator: ", "), refusal.meaning,
        refusal.reconnect.rawValue,
      ]
    }
    let columns = ["status", "code", "meaning", "upgrade: connect again?"]
    try DocumentTable(name: "HTTP refusals", rows: [columns] + rows).check()
  }

  @Test("the operators' settings are those of the code")
  func settings() throws {
    let plain = ServeOptions()
    let rows = ServeOptions.settings.map { setting in
      ["`\(setting.name)`", setting.write(plain) ?? "–", setting.help, setting.past ?? ""]
    }
    let columns = ["setting", "default", "what it is", "past it (and what counts that)"]
    try DocumentTable(name: "settings", rows: [columns] + rows).check()
  }

  @Test("the settings that change at a reload are those of the code")
  func liveSettings() throws {
    let live = ServeOptions.settings.filter(\.isLive).map { "`\($0.name)`" }.joined(separator: ", ")
    let rows = [
      ["change at once", live, "`event=reloaded changed=…`"],
      ["need a restart", "all others", "`event=needs_restart settings=…`"],
    ]
    try DocumentTable(name: "reload", rows: [["what", "settings", "the log says"]] + rows).check()
  }

  @Test("the operators' limits that have no setting are those of the code")
  func limits() throws {
    let (limits, offers) = (Limits(), HubLimits().offersPerIdentity)
    func table(_ table: HubTable) -> String {
      "`storage_full`; 503 (`table_limit_hits_total{table=\"\(table.name)\"}`)"
    }
    func pages(_ table: HubTable) -> String {
      "503 `rate_limited` (`table_limit_hits_total{table=\"\(table.name)\"}`)"
    }
    func share(_ limit: ShareLimit) -> String { " (`limit_hits_total{limit=\"\(limit.name)\"}`)" }
    let refused = "refused: 400"
    let rows: [[String]] = [
      [
        "\(HubLimits.movesPerTrip)", "moves of one trip, and keyed statuses of one driver, that are remembered",
        "the oldest is forgotten: its repetition counts as new",
      ],
      ["\(limits.hub.tripLists)", "pages of trips that are put together at once", pages(.tripLists)],
      ["\(limits.hub.driverLists)", "pages of drivers that are put together at once", pages(.driverLists)],
      ["\(limits.hub.offers)", "trips that are offered at once", table(.offers)],
      [
        "\(offers.driver), \(offers.rider), \(offers.ops)",
        "trips that one driver, rider or ops identity has offered at once",
        "`rate_limited`; 429" + share(.offersPerIdentity),
      ],
      [
        "\(OfferCriteria.maximumLimit), \(OfferCriteria.maximumAtOnce)",
        "drivers asked for one trip, in all and at a time", refused,
      ],
      ["\(limits.hub.tokenFamilies)", "families of refresh tokens", table(.tokenFamilies)],
      [
        "\(HubLimits.tokenFamiliesPerSubject)", "families of one `sub`",
        "the one that was refreshed least recently ends" + share(.tokenFamiliesPerSubject),
      ],
      ["\(limits.hub.revocations)", "revoked names", table(.revocations)],
      ["\(HubLimits.sharesPerTrip)", "links that share one trip at once", "429"],
      ["\(limits.channelsPerStream)", "channels of one event stream", refused],
      ["\(limits.vehiclesPerFeed)", "vehicles of a GTFS-realtime feed", "413"],
      [
        "\(Limits.typedVehicleFeedsPerIdentity)",
        "such feeds of one vehicle type, and tracks, that one identity has under way",
        "429" + share(.queriesPerIdentity),
      ],
      [
        "\(WebhookEndpoint.maximumCount)", "webhooks, of the file and set over HTTP",
        "the file is refused; 503 `storage_full`",
      ],
      ["\(StreamEndpoint.maximumCount)", "streams", "the file is refused"],
      ["\(WebhookControl.maximumQuestions)", "requests about webhooks that wait", "503 `rate_limited`"],
      ["\(limits.deadLettersPerPage)", "dead letters in one answer", refused],
    ]
    try DocumentTable(name: "limits", rows: [["limit", "of what", "past it (and what counts that)"]] + rows).check()
  }

  @Test("the operators' metrics are those of the code")
  func metrics() throws {
    let rows = Metric.all.map { metric in
      [
        "`\(metric.name)`" + (metric.label.map { " by `\($0)`" } ?? ""), metric.kind, metric.help,
      ]
    }
    try DocumentTable(name: "metrics", rows: [["metric", "kind", "what it is"]] + rows).check()
  }
}
