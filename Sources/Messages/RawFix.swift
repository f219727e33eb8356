// A fix as a driver's phone measured it, and what the hub made of it: for whoever asks why a driver is shown where it
// is shown (protocol/faces.md, "raw").
public import HubGeo

/// A measured fix with the hub's verdict. State: none is numbered or kept, and a slow subscriber misses some. Its
/// numbers are rounded where it is made, as a position's are.
public struct RawFix: Sendable, Equatable {
  public enum Verdict: UInt8, Sendable, CaseIterable {
    /// It was published.
    case accepted
    /// It was published, but where the track leads: its own place was not believed.
    case absorbed
    /// It is older than the newest: it is in the track, and was never published live.
    case history
    case duplicate
    /// It waits for the next fix to confirm it.
    case held
    case refused

    public var name: StaticString {
      switch self {
      case .accepted: "accepted"
      case .absorbed: "absorbed"
      case .history: "history"
      case .duplicate: "duplicate"
      case .held: "held"
      case .refused: "refused"
      }
    }
  }

  public var driverID: Identifier
  public var coordinate: Coordinate
  /// Metres, as the phone says.
  public var accuracy: Double?
  /// By the phone's clock.
  public var timestamp: Timestamp
  public var source: FixSource?
  /// Degrees clockwise from true north.
  public var heading: Double?
  /// Metres per second.
  public var speed: Double?
  public var verdict: Verdict
  /// Why it was refused: what its sender is told.
  public var reason: ErrorCode?
  /// Metres from the place that was published of it.
  public var offset: Double?

  public init(driverID: Identifier, coordinate: Coordinate, timestamp: Timestamp, verdict: Verdict) {
    self.driverID = driverID
    self.coordinate = coordinate
    self.timestamp = timestamp
    self.verdict = verdict
  }
}
