// Where zlib's state lives.
//
// Unsafe island: zlib's state points back to its z_stream and refuses another, so the z_stream is on the heap and never
// moves. It is allocated and freed here; its owner begins and ends it.
public import CHubZlib

/// A z_stream of zlib's, at one place as long as it lives.
@safe
public struct ZlibStream: ~Copyable {
  /// To be passed to zlib, and to be kept no longer than this value.
  public let pointer: UnsafeMutablePointer<z_stream>

  public init() {
    unsafe pointer = .allocate(capacity: 1)
    unsafe pointer.initialize(to: z_stream())
  }

  deinit {
    unsafe pointer.deinitialize(count: 1)
    unsafe pointer.deallocate()
  }
}
