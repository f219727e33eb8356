// What areas keep for each driver.

struct DriverArea {
  /// No node.
  static var none: UInt32 { .max }

  /// The first node of the watched cells that the driver is in (`AreaTable.Node`).
  var first = DriverArea.none
  /// The next tick looks at it.
  var isNoted = false
  /// The pseudonym that riders see.
  var pseudonym: UInt64 = 0
}
