// Predicts a driver's present position from the last published one, for answers about now (who is near, when
// will it arrive) while the newest position is seconds old.
//
// Constant speed, and a decaying turn. Both are limited: a turn at a junction ends after a quarter of a circle, and a
// driver who has not reported for ten seconds may have stopped. A car's rate of turn is a first-order Markov process
// (Singer, Estimating optimal tracking filter performance for manned maneuvering targets, IEEE Trans. AES 6 (1970)), so
// its expectation decays exponentially, within seconds.
public import HubGeo
public import HubMessages

extension Position {
  /// The longest prediction in seconds; after that the driver is assumed to have stopped there.
  public static let longestPrediction = 10.0
  /// Degrees after which a turn ends; from there on the way is straight.
  public static let longestTurn = 90.0
  /// Seconds in which a rate of turn falls to 1/e.
  public static let turnSeconds = 3.0

  /// The driver's position at `time`, by the clock of its fixes: by its speed, heading and turn rate for at most
  /// `longestPrediction` seconds. Before the fix, at a standstill, and where speed or heading is unknown, it is the
  /// position itself.
  public func predicted(at time: Timestamp) -> Coordinate {
    let (ahead, overflow) = time.milliseconds.subtractingReportingOverflow(timestamp.milliseconds)
    guard !overflow, ahead > 0, let speed, let heading, speed >= Position.standstillSpeed else { return coordinate }
    return predicted(seconds: min(Double(ahead) / 1000, Position.longestPrediction), speed: speed, heading: heading)
  }

  /// Follows three arcs, each with its part of the turn.
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

  /// Degrees turned: at `turnRate` at first, then less and less.
  private func turn(after seconds: Double) -> Double {
    let turned = turnRate * Position.turnSeconds * (1 - TrackMath.exponential(-seconds / Position.turnSeconds))
    return min(max(turned, -Position.longestTurn), Position.longestTurn)
  }
}
