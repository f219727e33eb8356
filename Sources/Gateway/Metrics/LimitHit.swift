// Limits whose hits a loop counts.
import HubWebSocket

/// Limits whose hits are counted by name: the same close code or status may stand for several.
enum LimitHit: UInt8, CaseIterable {
  case sessions, sessionsPerIdentity, areasPerIdentity, queriesPerIdentity
  case connectionsPerAddress, requestRate, incompleteBytes
  case messageBytes, fragments, inflateRatio, messageTime, metricsTime, subscriptions, tileQuestions, answerMemory

  /// The name in metrics.
  var name: StaticString {
    switch self {
    case .sessions: "sessions"
    case .sessionsPerIdentity: "sessions_per_identity"
    case .areasPerIdentity: "areas_per_identity"
    case .queriesPerIdentity: "queries_per_identity"
    case .connectionsPerAddress: "connections_per_address"
    case .requestRate: "request_rate"
    case .incompleteBytes: "incomplete_bytes"
    case .messageBytes: "message_bytes"
    case .fragments: "fragments"
    case .inflateRatio: "inflate_ratio"
    case .messageTime: "message_time"
    case .metricsTime: "metrics_time"
    case .subscriptions: "subscriptions"
    case .tileQuestions: "tile_questions"
    case .answerMemory: "answer_memory"
    }
  }
}

extension LimitHit {
  /// The limit that a frame or message exceeded; nil where it broke a rule.
  init?(_ error: FrameError) {
    switch error {
    case .messageTooLarge: self = .messageBytes
    case .tooManyFragments: self = .fragments
    case .inflatesTooMuch: self = .inflateRatio
    case .reservedBits, .reservedOpcode, .fragmentedControlFrame, .controlFrameTooLong, .unmaskedFrame, .maskedFrame,
      .lengthNotMinimal, .lengthOutOfRange, .unexpectedContinuation, .expectedContinuation, .closeFrameOfOneByte,
      .invalidCloseCode, .invalidUTF8, .invalidDeflate:
      return nil
    }
  }
}
