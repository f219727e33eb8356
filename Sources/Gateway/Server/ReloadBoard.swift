// Reloads of a running server and their outcomes, for metrics.
import HubSystem

/// What a running server can reload.
public enum Reloadable: UInt8, CaseIterable, Sendable {
  case tls, tokens, settings, webhooks

  /// The name in metrics.
  var name: StaticString {
    switch self {
    case .tls: "tls"
    case .tokens: "tokens"
    case .settings: "settings"
    case .webhooks: "webhooks"
    }
  }
}

/// The newest outcome of each. At the start all are good, else there would be no server.
final class ReloadBoard: Sendable {
  struct Outcome {
    var isSuccessful = true
    /// When it was last reloaded with success (ms since 1970); nil since the start.
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
