// The keys that seal session tickets. They rotate every 12 hours, and random ones when the operator asks for it.
//
// A ticket is the server's state of a session, stored by the client (RFC 5077, RFC 8446 §4.6.1). Under TLS 1.2 its key
// opens every session resumed with it, recorded traffic included, so a key must not live as long as the process (RFC
// 5077 §5.5; RFC 9325 §4.3.1: at least once a week). The previous key still opens tickets for as long again; tickets
// live for two hours (OpenSSL's default), so the rotation costs no client a full handshake.
//
// Hubs of a cluster resume each other's sessions: their keys are derived from a secret that they share and the number
// of the 12-hour period since 1970 (HKDF-Expand, RFC 5869 §2.3), so each hub has the same without asking another.
// Someone with that secret can open all tickets ever sealed with it; someone with a key, those of its period.
//
// OpenSSL's own keys never change, so it asks here (SSL_CTX_set_tlsext_ticket_key_evp_cb(3)). All loops share the keys.

import CHubOpenSSL
import HubSystem
import Synchronization

/// The keys of tickets: random, or derived from secrets; never written to a disk.
final class TicketKeys: Sendable {
  /// Nanoseconds for which a key seals, and then for which it only opens.
  static let period: Int64 = 12 * 3600 * 1_000_000_000

  /// A name of 16 bytes, part of each ticket, an AES-256 key, and a key for HMAC-SHA-256.
  private struct Key: Sendable {
    static let count = 80
    let bytes: [UInt8]

    init() {
      var bytes = [UInt8](repeating: 0, count: Key.count)
      let outcome = unsafe RAND_bytes(&bytes, Int32(bytes.count))
      precondition(outcome == 1, "OpenSSL has no randomness")
      self.bytes = bytes
    }

    /// The key of a period, by its number.
    init(from secret: [UInt8], period: Int64) {
      let info = (0..<8).map { UInt8(truncatingIfNeeded: period >> (56 - 8 * $0)) }
      var (bytes, block) = ([UInt8](), [UInt8]())
      while bytes.count < Key.count {
        let input = block + info + [UInt8(bytes.count / 32 + 1)]
        block = [UInt8](repeating: 0, count: 32)
        var length = 0
        let isDone =
          unsafe EVP_Q_mac(
            nil, "HMAC", nil, "SHA256", nil, secret, secret.count, input, input.count, &block, block.count, &length)
          != nil
        precondition(isDone && length == block.count, "OpenSSL without HMAC-SHA-256")
        bytes += block
      }
      self.bytes = Array(bytes.prefix(Key.count))
    }
  }

  private struct Ring: Sendable {
    var newest = Key()
    /// The period of a derived `newest`.
    var period: Int64?
    /// Newest first, each with the time until which it opens (uptime, ns).
    var retired: [(key: Key, until: Int64)] = []
    /// When `newest` retires; nil before the first connection.
    var changesAt: Int64?
    var isChangeAsked = false
  }

  private let secrets: [[UInt8]]
  private let ring = Locked(Ring())
  /// The time before which nothing is due (uptime, ns), read without the lock.
  private let nextLook = Atomic<Int64>(.min)

  /// Derived keys: sealed with the first secret, opened with any. Without secrets the keys are random.
  init(from secrets: [[UInt8]]) { self.secrets = secrets }

  /// Sets up a context to use these keys, which must outlive all connections of the context.
  func serve(_ context: OpaquePointer) {
    let isSet = unsafe SSL_CTX_set_ex_data(context, 0, Unmanaged.passUnretained(self).toOpaque())
    precondition(isSet == 1, "OpenSSL has no memory for a pointer")
    unsafe SSL_CTX_set_tlsext_ticket_key_evp_cb(context, useTicketKey)
  }

  /// The next connection rotates random keys. Derived ones stay those of the other hubs.
  func change() {
    ring.withLock {
      $0.isChangeAsked = true
      nextLook.store(.min, ordering: .relaxed)
    }
  }

  /// Rotates and forgets what is due. Called with each connection, so that a hub without connections needs no timer.
  func look(at clock: ClockReading) {
    guard secrets.isEmpty else { return derive(clock.unixMilliseconds / (TicketKeys.period / 1_000_000)) }
    let now = clock.uptimeNanoseconds
    guard now >= nextLook.load(ordering: .relaxed) else { return }
    ring.withLock { ring in
      let due = ring.changesAt ?? now + TicketKeys.period
      if ring.isChangeAsked || due <= now {
        ring.retired.insert((ring.newest, min(due, now) + TicketKeys.period), at: 0)
        if ring.retired.count > TicketKeys.maximumRetired { ring.retired.removeLast() }
        ring.newest = Key()
        ring.isChangeAsked = false
        ring.changesAt = now + TicketKeys.period
      } else {
        ring.changesAt = due
      }
      ring.retired.removeAll { $0.until <= now }
      let changesAt = ring.changesAt ?? .max
      nextLook.store(ring.retired.reduce(changesAt) { min($0, $1.until) }, ordering: .relaxed)
    }
  }

  /// Changes to the keys of a period and, for opening, of the one before and the next, since clocks differ.
  private func derive(_ period: Int64) {
    ring.withLock { ring in
      guard ring.period != period else { return }
      ring.period = period
      var keys = [period, period - 1, period + 1].flatMap { period in secrets.map { Key(from: $0, period: period) } }
      ring.newest = keys.removeFirst()
      ring.retired = keys.map { ($0, .max) }
    }
  }

  // MARK: What OpenSSL asks

  /// Writes the newest key's name and sets it up: 1, or -1 where OpenSSL failed.
  fileprivate func seal(
    _ name: UnsafeMutablePointer<UInt8>, _ iv: UnsafeMutablePointer<UInt8>, _ cipher: OpaquePointer,
    _ mac: OpaquePointer
  ) -> Int32 {
    unsafe ring.withLock { $0.newest }.bytes.withUnsafeBufferPointer { key in
      unsafe name.update(from: key.baseAddress!, count: 16)
      guard unsafe RAND_bytes(iv, 16) == 1,
        unsafe EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.baseAddress! + 16, iv) == 1,
        unsafe hub_ticket_mac(mac, key.baseAddress! + 48) == 1
      else { return -1 }
      return 1
    }
  }

  /// Finds the key that a ticket names: 1 or, where the client is to get a new ticket, 2; 0 for an unknown key, which
  /// leads to a full handshake; -1 where OpenSSL failed.
  fileprivate func open(
    _ name: UnsafeMutablePointer<UInt8>, _ iv: UnsafeMutablePointer<UInt8>, _ cipher: OpaquePointer,
    _ mac: OpaquePointer, isUsedOnce: Bool
  ) -> Int32 {
    let name = unsafe UnsafeBufferPointer(start: name, count: 16)
    let (key, isNewest) = ring.withLock { ring -> (Key?, Bool) in
      if unsafe ring.newest.bytes.starts(with: name) { return (ring.newest, true) }
      return (ring.retired.first { unsafe $0.key.bytes.starts(with: name) }?.key, false)
    }
    guard let key else { return 0 }
    return unsafe key.bytes.withUnsafeBufferPointer { key in
      guard unsafe EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.baseAddress! + 16, iv) == 1,
        unsafe hub_ticket_mac(mac, key.baseAddress! + 48) == 1
      else { return -1 }
      return isUsedOnce || !isNewest ? 2 : 1
    }
  }
}

/// OpenSSL's callback: write or read the key's name and the initialisation vector, and set up the contexts of cipher
/// and MAC.
private let useTicketKey:
  @convention(c) (
    OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?, OpaquePointer?, OpaquePointer?, Int32
  ) -> Int32 = { ssl, name, iv, cipher, mac, isSealing in
    guard let ssl = unsafe ssl, let name = unsafe name, let iv = unsafe iv, let cipher = unsafe cipher,
      let mac = unsafe mac, let context = unsafe SSL_get_SSL_CTX(ssl),
      let pointer = unsafe SSL_CTX_get_ex_data(context, 0)
    else { return -1 }
    // Each stream holds its TLSServer, which holds the keys.
    let keys = unsafe Unmanaged<TicketKeys>.fromOpaque(pointer).takeUnretainedValue()
    if isSealing == 1 { return unsafe keys.seal(name, iv, cipher, mac) }
    // With TLS 1.3 a ticket should be used once (RFC 8446 §C.4), so each resumption gets another.
    return unsafe keys.open(name, iv, cipher, mac, isUsedOnce: SSL_version(ssl) == TLS1_3_VERSION)
  }
