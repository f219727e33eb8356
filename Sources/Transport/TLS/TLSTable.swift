// The TLS of a loop's connections, by slot, beside the slab: a connection without TLS does not pay for it.

/// All streams of one loop, and their room.
struct TLSTable: ~Copyable {
  // Each stream has memory of its own, so pointers to it are good until `remove`.
  private var streams: [UnsafeMutablePointer<TLSStream>?] = []
  private var storedRoom: UnsafeMutablePointer<TLSRoom>?
  /// Streams that began a handshake in the turn of this number.
  var handshakeTurn: UInt64 = 0
  var handshakesInTurn = 0

  init() {}

  deinit {
    for stream in streams { stream?.deinitialize(count: 1).deallocate() }
    storedRoom?.deinitialize(count: 1).deallocate()
  }

  /// The loop's buffers for TLS, made when they are needed first.
  mutating func room(_ limits: EventLoopLimits) -> UnsafeMutablePointer<TLSRoom> {
    if let storedRoom { return storedRoom }
    let inputBytes = limits.readBufferBytes - TLSRoom.recordBytes
    precondition(inputBytes >= TLSRoom.recordBytes, "TLS needs a read buffer of 32 KiB or more")
    let room = UnsafeMutablePointer<TLSRoom>.allocate(capacity: 1)
    room.initialize(to: TLSRoom(inputBytes: inputBytes, keyUpdateLimit: limits.tlsKeyUpdates))
    storedRoom = room
    return room
  }

  /// The stream of a connection whose flags say that it has one.
  @inline(__always)
  func pointer(_ slot: UInt32) -> UnsafeMutablePointer<TLSStream> {
    guard let stream = streams[Int(slot)] else { preconditionFailure("a connection without a stream has isTLS") }
    return stream
  }

  mutating func insert(_ stream: consuming TLSStream, at slot: UInt32) {
    while streams.count <= Int(slot) { streams.append(nil) }
    precondition(streams[Int(slot)] == nil)
    let pointer = UnsafeMutablePointer<TLSStream>.allocate(capacity: 1)
    pointer.initialize(to: stream)
    streams[Int(slot)] = pointer
  }

  mutating func remove(_ slot: UInt32) {
    pointer(slot).deinitialize(count: 1).deallocate()
    streams[Int(slot)] = nil
  }
}
