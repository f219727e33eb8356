// The loop's state of one connection, and the slab of these structs: chunks that never move, so a connection costs no
// object, growth copies nothing, and a pointer to a slot is valid as long as the loop.

import Glibc
import HubBytes

/// One connection's state: 48 bytes with everything that an idle connection needs.
struct Connection {
  enum State: UInt8 {
    case free
    /// An outgoing connection with an unknown outcome, its TLS handshake included; counts as blocked.
    case connecting
    case open
    /// `close` was called: pending output is sent, input is discarded.
    case closing
    /// All is sent and SHUT_WR done: waits for the peer's FIN, because closing a socket with unread bytes resets the
    /// connection (RFC 1122 §4.2.2.13, RFC 2525 §2.17) and may destroy the last bytes at the peer.
    case lingering
    /// Ended, its descriptor closed; `closed` is still to be called.
    case doomed
  }

  struct Flags: OptionSet {
    let rawValue: UInt8
    static let isDirty = Flags(rawValue: 1)
    static let isReadingPaused = Flags(rawValue: 2)
    /// The kernel reported that there is room again.
    static let isWritable = Flags(rawValue: 4)
    static let hasOverflowed = Flags(rawValue: 8)
    /// The peer sent FIN while we were closing.
    static let peerHasFinished = Flags(rawValue: 16)
    /// The connection has a stream in the loop's TLSTable.
    static let isTLS = Flags(rawValue: 32)
  }

  var descriptor: Int32 = -1
  /// Incremented with each connection of the slot; never 0.
  var generation: UInt32 = 1
  /// Unsent bytes; nil unless the connection is blocked.
  var outbox: Outbox?
  /// This turn's sends: indices into the loop's segments, −1 for none.
  var firstSegment: Int32 = -1
  var lastSegment: Int32 = -1
  var timer = TimerLink()
  var cause = CloseCause.closedByUs
  var state = State.free
  var flags: Flags = []
  /// The events that epoll watches: bits of `Interest`.
  var interest: Interest = []

  /// The next free slot, while this one is free: shares storage with the first send, and `noSlot` is −1.
  var nextFree: UInt32 {
    get { UInt32(bitPattern: firstSegment) }
    set { firstSegment = Int32(bitPattern: newValue) }
  }
}

/// All connections of a loop. Slots are allocated lowest first after a start, then the last freed one first.
struct ConnectionSlab: ~Copyable {
  static let noSlot = UInt32.max

  // All its slots are initialised when it grows and deinitialised in deinit; pointers to them stay valid.
  private var table = ChunkTable<Connection>()
  private var firstFree = ConnectionSlab.noSlot
  private(set) var slotCount: UInt32 = 0

  init() {}

  deinit {
    for slot in 0..<slotCount { unsafe pointer(slot).deinitialize(count: 1) }
  }

  /// The slot's struct. `slot` must be below `slotCount`.
  @inline(__always)
  func pointer(_ slot: UInt32) -> UnsafeMutablePointer<Connection> {
    precondition(slot < slotCount)
    return unsafe table.pointer(Int(slot))
  }

  /// The connection of `id`, or nil when it is gone or doomed.
  @inline(__always)
  func live(_ id: ConnectionID) -> UnsafeMutablePointer<Connection>? {
    guard id.slot < slotCount else { return nil }
    let connection = unsafe pointer(id.slot)
    guard unsafe connection.pointee.generation == id.generation else { return nil }
    switch unsafe connection.pointee.state {
    case .free, .doomed: return nil
    case .connecting, .open, .closing, .lingering: return unsafe connection
    }
  }

  /// Allocates a slot for `descriptor`, which the slab owns from now on.
  mutating func insert(descriptor: Int32, state: Connection.State) -> ConnectionID {
    if firstFree == ConnectionSlab.noSlot { grow() }
    let slot = firstFree
    let connection = unsafe pointer(slot)
    firstFree = unsafe connection.pointee.nextFree
    unsafe connection.pointee.descriptor = descriptor
    unsafe connection.pointee.state = state
    unsafe connection.pointee.nextFree = ConnectionSlab.noSlot
    return unsafe ConnectionID(slot: slot, generation: connection.pointee.generation)
  }

  /// Frees a slot; its descriptor is closed and its timer unset already.
  mutating func remove(_ slot: UInt32) {
    let connection = unsafe pointer(slot)
    let next = unsafe connection.pointee.generation &+ 1
    unsafe connection.pointee = Connection()
    unsafe connection.pointee.generation = next == 0 ? 1 : next
    unsafe connection.pointee.nextFree = firstFree
    firstFree = slot
  }

  private mutating func grow() {
    let first = slotCount
    table.grow()
    slotCount = UInt32(table.capacity)
    for slot in first..<slotCount {
      var free = Connection()
      free.nextFree = slot + 1 < slotCount ? slot + 1 : ConnectionSlab.noSlot
      unsafe pointer(slot).initialize(to: free)
    }
    firstFree = first
  }
}
