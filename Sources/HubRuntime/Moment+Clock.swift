// The clocks of a loop as the hub's time.
public import HubMessages
public import HubSystem

extension Moment {
  /// The moment at which the clocks were read.
  @inlinable @inline(__always)
  public init(_ reading: ClockReading) {
    self.init(uptime: reading.uptimeNanoseconds, timestamp: Timestamp(milliseconds: reading.unixMilliseconds))
  }
}
