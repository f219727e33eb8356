// Families of tokens, revocations and entries of the audit trail as bytes, in the form of RecordValues.swift.
import HubBytes
import HubMessages

extension TokenFamily: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(
      id, subject, role, String(decoding: claims, as: UTF8.self), created, serial, rotated,
      lastAccessEnds)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(
      id: try reader.read(), subject: try reader.read(), role: try reader.read(),
      claims: Array((try reader.read() as String).utf8), created: try reader.read())
    serial = try reader.count()
    rotated = try reader.read()
    lastAccessEnds = try reader.read()
  }
}

extension RevokedName: Recorded {
  func write(into bytes: inout ByteBuffer) {
    switch self {
    case .subject(let id): bytes.record(UInt8(ascii: "s"), id)
    case .tokenID(let id): bytes.record(UInt8(ascii: "j"), id)
    case .families(let id): bytes.record(UInt8(ascii: "u"), id)
    }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    switch Unicode.Scalar(try reader.read() as UInt8) {
    case "s": self = .subject(try reader.read())
    case "j": self = .tokenID(try reader.read())
    case "u": self = .families(of: try reader.read())
    case _: throw reader.failure(.text)
    }
  }
}

extension Revocation: Recorded {
  func write(into bytes: inout ByteBuffer) { bytes.record(name, until, cause) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(try reader.read(), until: try reader.read(), cause: try reader.read())
  }
}

extension RevocationCause: Recorded {}
extension AuditAction: Recorded {}

extension DurableAudit: Recorded {
  func write(into bytes: inout ByteBuffer) {
    let source = entry.source
    bytes.record(
      time, source.action, source.actor?.role, source.actor?.id, source.address, entry.target, UInt16(entry.status),
      leftOut)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    time = try reader.read()
    let action: AuditAction = try reader.read()
    let (role, id): (Role?, Identifier?) = (try reader.read(), try reader.read())
    guard (role == nil) == (id == nil) else { throw reader.failure(.optional) }
    let actor = role.flatMap { role in id.map { Actor(role: role, id: $0) } }
    let source = AuditSource(action, by: actor, from: try reader.read())
    entry = AuditEntry(source, about: try reader.read(), status: Int(try reader.read() as UInt16))
    leftOut = try reader.count()
  }
}
