// Where a driver is now, from what was published of it last: for answers that are about the present (who is near, when
// will it arrive) while the newest position is seconds old.
//
// Constant speed and constant turn. Both end: a turn at a junction is over after a quarter of a circle, and who has not
// been heard of for ten seconds may have stopped.
public import HubGeo
public import HubMessages

extension Position {
  /// Seconds after the fix for which the driver is taken to go on; after that it stays where it would be then.
  public static let longestPrediction = 10.0
  /// Degrees after which a turn is taken to be over; from there on the way is straight.
  public static let longestTurn = 90.0

  /// Where the driver is at `time`, by the clock of its fixes: along its speed, heading and turn rate for at most
  /// `longestPrediction` seconds. Before the fix, at a standstill, and where speed or heading is unknown, it is the
  /// position itself.
  public func predicted(at time: Timestamp) -> Coordinate {
    let (ahead, overflow) = time.milliseconds.subtractingReportingOverflow(timestamp.milliseconds)
    guard !overflow, ahead > 0, let speed, let heading, speed >= Position.standstillSpeed else { return coordinate }
    return predicted(seconds: min(Double(ahead) / 1000, Position.longestPrediction), speed: speed, heading: heading)
  }

  private func predicted(seconds: Double, speed: Double, heading: Double) -> Coordinate {
    let turn = turnRate * seconds
    guard abs(turn) > Position.longestTurn else {
      return coordinate.arrival(bearingDegrees: heading, distanceMeters: speed * seconds, turnDegrees: turn)
    }
    let whole = turn < 0 ? -Position.longestTurn : Position.longestTurn
    let turning = whole / turnRate
    return
      coordinate
      .arrival(bearingDegrees: heading, distanceMeters: speed * turning, turnDegrees: whole)
      .arrival(bearingDegrees: heading + whole, distanceMeters: speed * (seconds - turning))
  }
}
