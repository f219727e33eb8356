// Limits of what drives a hub.

enum RuntimeLimits {
  /// Questions that another thread is asked at a time; the others wait in the hub, which has its own limits for them.
  static let questionsPerRound = 64
}
