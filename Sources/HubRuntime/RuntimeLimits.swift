// Limits of what drives a hub.

enum RuntimeLimits {
  /// Questions that another thread is asked at a time; the others wait in the hub, which has its own limits for them.
  static let questionsPerRound = 64
  /// Records of a driver that are read to see whether the fixes of a batch are stored: 5½ hours of one a second, from
  /// an hour before the oldest. Past it the fix counts as new; readers of the track see it once.
  static let recordsPerLookup = 20_000
  /// Records of a driver that are read for the track of one trip: four days of one a second. Past it the track is
  /// refused (413).
  static let recordsPerTrack = 400_000
  /// Records from long after a trip's end that are skipped, since the hub's clock may have been ahead for a while. Past
  /// it the track counts as complete.
  static let recordsBehindTrack = 1000
  /// One identity may have 1/`memoryParts` of the memory for other threads' answers. Past it its next answer is 503,
  /// unless it has no other.
  static let memoryParts = 4
}
