// One timer for each connection in a hashed timing wheel (Varghese and Lauck, 1987, scheme 6): setting, moving and
// unsetting cost O(1) and no memory beyond 16 bytes in the connection itself.
//
// A heartbeat is pushed back by each message and almost never fires. Moving a timer to a later time only stores the new
// deadline; when the wheel reaches the old bucket, it moves the connection to the right one.

import HubBytes

/// A connection's position in the wheel.
struct TimerLink {
  /// The tick at which to fire; 0 when unset.
  var deadline: UInt32 = 0
  /// The tick of the bucket that holds the connection, never later than `deadline` while that is set; 0 when in none.
  var queued: UInt32 = 0
  var next = ConnectionSlab.noSlot
  var previous = ConnectionSlab.noSlot
}

/// The timers of all connections of a slab. Never fires early; late by at most a tick (67 ms) and the turn's length.
struct TimerWheel {
  /// A tick is 2^26 ns, about 67 ms: fine enough for heartbeats and timeouts, and a shift instead of a division.
  static let tickBits: Int64 = 26
  /// 512 ticks, 34 s a round: a heartbeat of 30 s is looked at once.
  static let bucketCount: UInt32 = 512

  private let origin: Int64
  /// The last tick whose bucket was emptied. Starts at 1, so that 0 can mean "none".
  private var current: UInt32 = 1
  private var heads = [UInt32](repeating: ConnectionSlab.noSlot, count: Int(bucketCount))
  /// The first tick whose bucket may hold a connection; `.max` where all are empty. Too early where a timer was unset.
  private var earliest = UInt32.max
  /// A bit for each bucket that is not empty, to find the next one without walking.
  private var occupied = [UInt64](repeating: 0, count: Int(bucketCount) / 64)

  /// A wheel that counts from `uptimeNanoseconds`; lasts nine years from there.
  init(startingAt uptimeNanoseconds: Int64) { origin = uptimeNanoseconds }

  /// Sets the timer of `slot`, replacing the one it had; nil unsets it. O(1).
  mutating func set(_ slot: UInt32, at uptimeNanoseconds: Int64?, in slab: borrowing ConnectionSlab) {
    let connection = unsafe slab.pointer(slot)
    guard let uptimeNanoseconds else {
      unsafe connection.pointee.timer.deadline = 0
      return
    }
    let deadline = max(tick(notBefore: uptimeNanoseconds), current + 1)
    unsafe connection.pointee.timer.deadline = deadline
    let queued = unsafe connection.pointee.timer.queued
    if queued != 0 {
      if queued <= deadline { return }
      unlink(slot, in: slab)
    }
    link(slot, in: slab)
  }

  /// Moves the timer of `slot` to an earlier time; one that is due before that stays. Precondition: it is set.
  mutating func set(_ slot: UInt32, noLaterThan uptimeNanoseconds: Int64, in slab: borrowing ConnectionSlab) {
    let deadline = unsafe slab.pointer(slot).pointee.timer.deadline
    if tick(notBefore: uptimeNanoseconds) < deadline { set(slot, at: uptimeNanoseconds, in: slab) }
  }

  /// Takes the slot out of the wheel, before it is freed.
  mutating func forget(_ slot: UInt32, in slab: borrowing ConnectionSlab) {
    unsafe slab.pointer(slot).pointee.timer.deadline = 0
    if unsafe slab.pointer(slot).pointee.timer.queued != 0 { unlink(slot, in: slab) }
  }

  /// Moves on to `uptimeNanoseconds` and appends the connections that are due to `due`, in no particular order
  /// within a tick. Their timers stay marked until `takeDue`.
  @inline(__always)
  mutating func advance(
    to uptimeNanoseconds: Int64, in slab: borrowing ConnectionSlab, due: inout TurnList<ConnectionID>
  ) {
    let elapsed = max(0, uptimeNanoseconds - origin) >> TimerWheel.tickBits
    let now = UInt32(min(elapsed, Int64(UInt32.max) - 2 * Int64(TimerWheel.bucketCount))) + 1
    if now > current { advance(toTick: now, in: slab, due: &due) }
  }

  @inline(never)
  private mutating func advance(
    toTick now: UInt32, in slab: borrowing ConnectionSlab, due: inout TurnList<ConnectionID>
  ) {
    // After a long sleep each bucket is looked at once, not once a round.
    let last = min(now, current &+ TimerWheel.bucketCount)
    let first = current + 1
    current = now
    for tick in first...last { empty(Int(tick % TimerWheel.bucketCount), in: slab, due: &due) }
    if earliest <= now { earliest = firstOccupied() }
  }

  /// Unsets the timer of a connection that `advance` reported due; false if it was set or unset since.
  mutating func takeDue(_ slot: UInt32, in slab: borrowing ConnectionSlab) -> Bool {
    let timer = unsafe slab.pointer(slot).pointee.timer
    guard timer.deadline != 0, timer.queued == 0, timer.deadline <= current else { return false }
    unsafe slab.pointer(slot).pointee.timer.deadline = 0
    return true
  }

  /// The uptime at which to call `advance` next, or nil with no timer set; early at most, never late. O(1).
  var nextUptimeNanoseconds: Int64? {
    earliest == .max ? nil : origin + Int64(earliest - 1) << TimerWheel.tickBits
  }

  /// The tick of the next bucket that is not empty; `.max` where all are.
  private func firstOccupied() -> UInt32 {
    let start = (current + 1) % TimerWheel.bucketCount
    let words = occupied.count
    var word = Int(start / 64)
    var bits = occupied[word] & (~0 << UInt64(start % 64))
    for _ in 0...words {
      if bits != 0 {
        let bucket = UInt32(word * 64 + bits.trailingZeroBitCount)
        return current + 1 + (bucket &- start) % TimerWheel.bucketCount
      }
      word = (word + 1) % words
      bits = occupied[word]
    }
    return .max
  }

  private func tick(notBefore uptimeNanoseconds: Int64) -> UInt32 {
    let (elapsed, overflow) = uptimeNanoseconds.subtractingReportingOverflow(origin)
    guard !overflow else { return uptimeNanoseconds < 0 ? 1 : .max - 1 }
    let whole = elapsed >> TimerWheel.tickBits
    let isExact = elapsed & (1 << TimerWheel.tickBits - 1) == 0
    return UInt32(clamping: min(whole + (isExact ? 1 : 2), Int64(UInt32.max) - 1))
  }

  /// Detaches a bucket, then deals with its connections one by one: due, to be moved on, or unset meanwhile.
  private mutating func empty(_ bucket: Int, in slab: borrowing ConnectionSlab, due: inout TurnList<ConnectionID>) {
    var slot = heads[bucket]
    heads[bucket] = ConnectionSlab.noSlot
    occupied[bucket / 64] &= ~(1 << UInt64(bucket % 64))
    while slot != ConnectionSlab.noSlot {
      let connection = unsafe slab.pointer(slot)
      let next = unsafe connection.pointee.timer.next
      unsafe connection.pointee.timer.queued = 0
      if unsafe connection.pointee.timer.deadline > current {
        link(slot, in: slab)
      } else if unsafe connection.pointee.timer.deadline != 0 {
        unsafe due.append(ConnectionID(slot: slot, generation: connection.pointee.generation))
      }
      slot = next
    }
  }

  private mutating func link(_ slot: UInt32, in slab: borrowing ConnectionSlab) {
    let connection = unsafe slab.pointer(slot)
    // More than a round away: the last bucket of this round, to be looked at again then.
    let queued = unsafe min(connection.pointee.timer.deadline, current + TimerWheel.bucketCount - 1)
    let bucket = Int(queued % TimerWheel.bucketCount)
    let head = heads[bucket]
    unsafe connection.pointee.timer.queued = queued
    unsafe connection.pointee.timer.next = head
    unsafe connection.pointee.timer.previous = ConnectionSlab.noSlot
    if head != ConnectionSlab.noSlot { unsafe slab.pointer(head).pointee.timer.previous = slot }
    heads[bucket] = slot
    occupied[bucket / 64] |= 1 << UInt64(bucket % 64)
    earliest = min(earliest, queued)
  }

  private mutating func unlink(_ slot: UInt32, in slab: borrowing ConnectionSlab) {
    let timer = unsafe slab.pointer(slot).pointee.timer
    let bucket = Int(timer.queued % TimerWheel.bucketCount)
    if timer.next != ConnectionSlab.noSlot { unsafe slab.pointer(timer.next).pointee.timer.previous = timer.previous }
    if timer.previous != ConnectionSlab.noSlot {
      unsafe slab.pointer(timer.previous).pointee.timer.next = timer.next
    } else {
      heads[bucket] = timer.next
      if timer.next == ConnectionSlab.noSlot { occupied[bucket / 64] &= ~(1 << UInt64(bucket % 64)) }
    }
    unsafe slab.pointer(slot).pointee.timer.queued = 0
  }
}
