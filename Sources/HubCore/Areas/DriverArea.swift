// What areas keep of each driver, in the driver's record: where it lies a tick finds it with the position.

struct DriverArea {
  /// No node.
  static var none: UInt32 { .max }

  /// The first node of the watched cells that the driver is in (`AreaTable.Node`).
  var first = DriverArea.none
  /// It is to be looked at with the next tick.
  var isNoted = false
  /// What riders know it by.
  var pseudonym: UInt64 = 0
}
