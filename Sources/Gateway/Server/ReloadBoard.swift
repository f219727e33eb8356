// What was read again while the server ran, and whether it could be used: for the metrics.
import HubSystem

/// What a running server may read again.
public enum Reloadable: UInt8, CaseIterable, Sendable {
  case tls, tokens, settings, webhooks

  /// As the metrics have it.
  var name: StaticString {
    switch self {
    case .tls: "tls"
    case .tokens: "tokens"
    case .settings: "settings"
    case .webhooks: "webhooks"
    }
  }
}

/// The newest outcome of each. What was read at the start is good, else there would be no server.
final class ReloadBoard: Sendable {
  struct Outcome {
    var isSuccessful = true
    /// When it was read with success the last time (ms since 1970); nil since the start.
    var timestamp: Int64?
  }

  private let outcomes = Locked([Outcome](repeating: Outcome(), count: Reloadable.allCases.count))

  func note(_ what: Reloadable, isSuccessful: Bool, at timestamp: Int64) {
    outcomes.withLock { outcomes in
      outcomes[Int(what.rawValue)].isSuccessful = isSuccessful
      if isSuccessful { outcomes[Int(what.rawValue)].timestamp = timestamp }
    }
  }

  func outcome(_ what: Reloadable) -> Outcome { outcomes.withLock { $0[Int(what.rawValue)] } }
}
