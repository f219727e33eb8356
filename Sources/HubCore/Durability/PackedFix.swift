// A stored fix as its bytes, for tables of many: a `StoredFix` is four times as large.
import HubGeo
public import HubMessages

/// A fix as it was stored, in the 56 bytes that it has in a journal.
public struct PackedFix: Sendable, BitwiseCopyable {
  private var bytes: InlineArray<7, UInt64>

  /// Copies the first 56 bytes of `source`, which are those of a valid fix.
  init(copying source: UnsafeRawBufferPointer) {
    bytes = InlineArray { unsafe source.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self) }
  }

  /// Of the fix, by the phone's clock.
  public var timestamp: Timestamp {
    unsafe withUnsafeBytes(of: bytes) { unsafe Timestamp(milliseconds: StoredFix.milliseconds(of: $0)) }
  }

  /// The fix as a value. It was valid when it was packed.
  public var unpacked: StoredFix {
    guard let fix = unsafe withUnsafeBytes(of: bytes, { unsafe StoredFix($0) }) else {
      preconditionFailure("it was read once")
    }
    return fix
  }
}

extension FixesRecord {
  /// The fix at an index, in its bytes.
  public func packed(_ index: Int) -> PackedFix { unsafe PackedFix(copying: bytes(of: index)) }
}
