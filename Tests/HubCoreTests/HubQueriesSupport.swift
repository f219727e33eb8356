// Questions put to a hub on the bench.
import HubGeo
import HubMessages
import Testing

@testable import HubCore

extension HubBench {
  /// Who asks where a test says nothing else.
  static let asker = Actor(role: .ops, id: id("o"))

  /// Puts a question and runs turns until it is answered, at most so many; nil where it is not.
  func ask(
    _ search: DriverSearch, for audience: Audience = .ops, turns: Int = 10_000, between: () -> Void = {}
  ) -> DriverList? {
    var outputs = turn(.query(session(slot: 70), .drivers(search, audience, by: HubBench.asker))).all
    for _ in 0..<turns {
      for case .queryResult(_, .drivers(var list), _) in outputs {
        list.sort()
        return list
      }
      between()
      outputs = turn().all
    }
    return nil
  }

  func nearby(_ center: Coordinate, radiusMeters: Double? = nil, limit: Int? = nil) -> [DriverReport]? {
    ask(DriverSearch(area: .nearby(center, radiusMeters: radiusMeters), limit: limit))?.drivers
  }

  func report(of driver: String) -> DriverReport? {
    let turn = turn(.query(session(slot: 70), .driver(id(driver))))
    guard case .queryResult(_, .driver(let report), _) = turn.all.first else { return nil }
    return report
  }
}
