// Where a driver is now, from what was published of it last: for answers that are about the present (who is near, when
// will it arrive) while the newest position is seconds old.
//
// Constant speed, and a turn that dies away. Both end: a turn at a junction is over after a quarter of a circle, and who
// has not been heard of for ten seconds may have stopped. How a car turns is a first-order Markov process of some
// seconds (Singer, Estimating optimal tracking filter performance for manned maneuvering targets, IEEE Trans. AES 6
// (1970)), so what is expected of it decays exponentially.
public import HubGeo
public import HubMessages

extension Position {
  /// Seconds after the fix for which the driver is taken to go on; after that it stays where it would be then.
  public static let longestPrediction = 10.0
  /// Degrees after which a turn is taken to be over; from there on the way is straight.
  public static let longestTurn = 90.0
  /// Seconds in which a rate of turn falls to 1/e.
  public static let turnSeconds = 3.0

  /// Where the driver is at `time`, by the clock of its fixes: along its speed, heading and turn rate for at most
  /// `longestPrediction` seconds. Before the fix, at a standstill, and where speed or heading is unknown, it is the
  /// position itself.
  public func predicted(at time: Timestamp) -> Coordinate {
    let (ahead, overflow) = time.milliseconds.subtractingReportingOverflow(timestamp.milliseconds)
    guard !overflow, ahead > 0, let speed, let heading, speed >= Position.standstillSpeed else { return coordinate }
    return predicted(seconds: min(Double(ahead) / 1000, Position.longestPrediction), speed: speed, heading: heading)
  }

  /// Along three arcs, each with its part of the turn.
  private func predicted(seconds: Double, speed: Double, heading: Double) -> Coordinate {
    var place = coordinate
    var bearing = heading
    let arcs = turnRate == 0 ? 1 : 3
    let step = seconds / Double(arcs)
    for arc in 0..<arcs {
      let turned = turn(after: step * Double(arc + 1)) - turn(after: step * Double(arc))
      place = place.arrival(bearingDegrees: bearing, distanceMeters: speed * step, turnDegrees: turned)
      bearing += turned
    }
    return place
  }

  /// Degrees by which it has turned: at `turnRate` at first, and less and less.
  private func turn(after seconds: Double) -> Double {
    let turned = turnRate * Position.turnSeconds * (1 - TrackMath.exponential(-seconds / Position.turnSeconds))
    return min(max(turned, -Position.longestTurn), Position.longestTurn)
  }
}
