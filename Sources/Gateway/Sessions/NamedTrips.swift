// Binary drivers name their trip once; their further fixes belong to the same one (protocol/binary.md).
import HubMessages

/// The trip that each binary session's fixes named last, by slot.
struct NamedTrips {
  /// An object, since few of a loop's slots are binary drivers'.
  private final class Name {
    let id: Identifier
    init(_ id: Identifier) { self.id = id }
  }

  private var names: [Name?] = []

  /// Reads a message of a binary session.
  mutating func read(_ slot: Int, _ payload: UnsafeRawBufferPointer) throws(MessageError) -> ClientEnvelope {
    let before = slot < names.count ? names[slot]?.id : nil
    let envelope = try unsafe BinaryReader.read(payload, tripBefore: before)
    if case .locationUpdate(let update) = envelope.message, let trip = update.tripID, trip != before {
      while names.count <= slot { names.append(nil) }
      names[slot] = Name(trip)
    }
    return envelope
  }

  /// The session has ended.
  mutating func forget(_ slot: Int) {
    if slot < names.count { names[slot] = nil }
  }
}
