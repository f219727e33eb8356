// The TLS of a loop's connections, by slot, beside the slab: connections without TLS do not pay for it.

/// All streams of one loop, and their buffers.
@safe
struct TLSTable: ~Copyable {
  // Each stream has memory of its own, so pointers to it are valid until `remove`.
  private var streams: [UnsafeMutablePointer<TLSStream>?] = unsafe []
  private var storedBuffers: UnsafeMutablePointer<TLSBuffers>?
  /// The turn whose steps of handshakes are counted, and how many it has had.
  var handshakeTurn: UInt64 = 0
  var handshakesInTurn = 0

  init() {}

  deinit {
    for index in unsafe streams.indices { unsafe streams[index]?.deinitialize(count: 1).deallocate() }
    unsafe storedBuffers?.deinitialize(count: 1).deallocate()
  }

  /// The loop's buffers for TLS, made when first needed.
  mutating func buffers(_ limits: EventLoopLimits) -> UnsafeMutablePointer<TLSBuffers> {
    if let storedBuffers = unsafe storedBuffers { return unsafe storedBuffers }
    let inputBytes = limits.readBufferBytes - TLSBuffers.recordBytes
    precondition(inputBytes >= TLSBuffers.recordBytes, "TLS needs a read buffer of 32 KiB or more")
    let buffers = UnsafeMutablePointer<TLSBuffers>.allocate(capacity: 1)
    unsafe buffers.initialize(
      to: TLSBuffers(
        inputBytes: inputBytes, keyUpdateLimit: limits.tlsKeyUpdates, handshakeLimit: limits.tlsHandshakeReadBytes))
    unsafe storedBuffers = buffers
    return unsafe buffers
  }

  /// The stream of a connection with the flag `isTLS`.
  @inline(__always)
  func pointer(_ slot: UInt32) -> UnsafeMutablePointer<TLSStream> {
    guard let stream = unsafe streams[Int(slot)] else { preconditionFailure("a connection without a stream has isTLS") }
    return unsafe stream
  }

  mutating func insert(_ stream: consuming TLSStream, at slot: UInt32) {
    while unsafe streams.count <= Int(slot) { unsafe streams.append(nil) }
    unsafe precondition(streams[Int(slot)] == nil)
    let pointer = UnsafeMutablePointer<TLSStream>.allocate(capacity: 1)
    unsafe pointer.initialize(to: stream)
    unsafe streams[Int(slot)] = unsafe pointer
  }

  mutating func remove(_ slot: UInt32) {
    unsafe pointer(slot).deinitialize(count: 1).deallocate()
    unsafe streams[Int(slot)] = nil
  }
}
