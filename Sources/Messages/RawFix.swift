// A fix as the phone measured it, with the hub's verdict: to find out why a driver is shown at a position
// (protocol/ops.md, "raw").
public import HubGeo

/// A measured fix with the hub's verdict. State: not numbered or kept, and slow subscribers miss some. Its numbers are
/// rounded when it is made, like a position's.
public struct RawFix: Sendable, Equatable {
  /// What the hub did with the fix.
  public enum Verdict: UInt8, Sendable, CaseIterable {
    /// It was published.
    case accepted
    /// It was published at the track's position: its own coordinate was rejected.
    case absorbed
    /// It is older than the newest: part of the track, never published live.
    case history
    case duplicate
    /// It waits for the next fix to confirm it.
    case held
    case refused

    /// Its keyword on the wire.
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
  /// Metres, as the phone reported.
  public var accuracy: Double?
  /// By the phone's clock.
  public var timestamp: Timestamp
  public var source: FixSource?
  /// Degrees clockwise from true north.
  public var heading: Double?
  /// Metres per second.
  public var speed: Double?
  public var verdict: Verdict
  /// Why it was refused, as in the answer to its sender.
  public var reason: ErrorCode?
  /// Metres from the measured to the published position; nil where none was published.
  public var offset: Double?

  public init(driverID: Identifier, coordinate: Coordinate, timestamp: Timestamp, verdict: Verdict) {
    self.driverID = driverID
    self.coordinate = coordinate
    self.timestamp = timestamp
    self.verdict = verdict
  }
}
