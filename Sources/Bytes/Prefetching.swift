// Memory that will be looked at soon, asked for before it is needed.
//
// A hub's records are many and each is looked at seldom: a driver's 800 bytes come from main memory with each of its fixes,
// some 0.1 µs for each of a few loads that depend on each other. Asked for while the message is still parsed, they
// are there when the hub looks.
import CLinux

/// Asks the processor for the cache lines of `byteCount` bytes from `address` on. An instruction for each line, and nothing
/// else: it does not wait, and any address will do, one that is no memory at all included.
@inlinable @inline(__always)
public func prefetch(_ address: UnsafeRawPointer, byteCount: Int) {
  var offset = 0
  while offset < byteCount {
    prefetch_line(address + offset)
    offset += 64
  }
}
