// The numbers of a phone that a hub accepts, and those that mean "unknown".
import HubMessages

extension Timestamp {
  /// Whether a hub accepts it from a client: from the year 2000 to 9999. A phone without its clock says 1970.
  var isAcceptedFromClients: Bool { self == nearestAccepted }

  /// The nearest accepted time.
  var nearestAccepted: Timestamp { min(max(self, .earliestFromClients), Timestamp.accepted.upperBound) }
}

extension Fix {
  /// This fix without numbers that mean "unknown" on phones: negative ones for what can't be negative, and NaN.
  var withKnownNumbers: Fix {
    var fix = self
    fix.accuracy = Fix.known(accuracy)
    fix.heading = Fix.known(heading).flatMap { $0 <= 360 ? $0 : nil }
    fix.speed = Fix.known(speed)
    fix.headingAccuracy = Fix.known(headingAccuracy)
    fix.speedAccuracy = Fix.known(speedAccuracy)
    fix.batteryLevel = Fix.known(batteryLevel).map { min($0, 1) }
    fix.altitude = altitude.flatMap { $0.isFinite ? $0 : nil }
    return fix
  }

  private static func known(_ number: Double?) -> Double? {
    number.flatMap { $0 >= 0 && $0.isFinite ? $0 : nil }
  }
}
