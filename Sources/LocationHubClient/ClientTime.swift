// What of a phone's numbers a hub takes, and what of them means "unknown".
import HubMessages

extension Timestamp {
  private static let taken = Timestamp.earliestFromClients...Timestamp.accepted.upperBound

  /// Whether a client may say it: from the year 2000 to 9999. A phone that lost its clock says 1970.
  var isTaken: Bool { Timestamp.taken.contains(self) }

  /// The nearest time that a client may say.
  var nearestTaken: Timestamp { min(max(self, Timestamp.taken.lowerBound), Timestamp.taken.upperBound) }
}

extension Fix {
  /// This fix without the numbers by which phones say "unknown": below 0 for what cannot be, and what is no number.
  var withKnownNumbers: Fix {
    var fix = self
    fix.accuracy = Fix.known(accuracy)
    fix.heading = Fix.known(heading).flatMap { $0 <= 360 ? $0 : nil }
    fix.speed = Fix.known(speed)
    fix.headingAccuracy = Fix.known(headingAccuracy)
    fix.speedAccuracy = Fix.known(speedAccuracy)
    fix.batteryLevel = Fix.known(batteryLevel)
    fix.altitude = altitude.flatMap { $0.isFinite ? $0 : nil }
    return fix
  }

  private static func known(_ number: Double?) -> Double? {
    number.flatMap { $0 >= 0 && $0.isFinite ? $0 : nil }
  }
}
