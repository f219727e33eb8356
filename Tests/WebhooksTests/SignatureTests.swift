// Signatures and bodies. The vectors in protocol/ are what PyPI's standardwebhooks and cryptography verify
// (Tests/Foreign/test_webhooks.py); here they are made anew, byte for byte.
import Foundation
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import HubTokens
import Testing

@testable import HubWebhooks

@Suite struct SignatureTests {
  /// The seed of RFC 8032 §7.1, test 1, as PKCS #8.
  private let key = """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
    -----END PRIVATE KEY-----
    """

  private var secrets: [WebhookSecret] {
    [WebhookSecret(bytes: Array(0..<32))!, WebhookSecret(bytes: Array(repeating: 0xFB, count: 64))!]
  }

  private func signed(_ event: Publication, record: UInt32) throws -> String {
    var body = ByteBuffer()
    #expect(WebhookBody.write(event, into: &body))
    let set = try KeySet(parsing: Array(key.utf8))
    let signer = try WebhookSigner(secrets: secrets, key: set.keys.first)
    let id = "\(EventID(epoch: "e1", position: JournalPosition(group: 7, record: record)))"
    let time = Timestamp(milliseconds: 1_764_000_000_999)
    let signatures = try signer.signatures(id: id, timestamp: time, body: body.array())
    return """
      {"id":"\(id)","timestamp":"1764000000","signature":"\(signatures)","secrets":["\(secrets[0].text)",\
      "\(secrets[1].text)"],"body":\(String(decoding: body.array(), as: UTF8.self))}
      """
  }

  private var events: [Publication] {
    let time = Timestamp(milliseconds: 1_763_999_999_123)
    let (trip, driver) = (Identifier("T1")!, Identifier("D1")!)
    let arriving = HubMessages.Notification(
      kind: .driverArriving, title: "Arriving", body: "“2 min” ✓", driverID: driver,
      leg: .init(target: .pickup, distance: 350, eta: 120), sequence: 4)
    let move = TripUpdate(
      tripID: trip, status: .accepted, previousStatus: .requested, driverID: driver, timestamp: time,
      location: Coordinate(latitude: 52.52, longitude: 13.405), sequence: 5)
    return [
      Publication(channel: .trip(trip), number: 9, timestamp: time, body: .notification(arriving)),
      Publication(channel: .driver(driver), number: 10, timestamp: time, body: .tripUpdate(move)),
    ]
  }

  @Test("The requests of protocol/webhook-vectors.ndjson are what this signer makes")
  func vectors() throws {
    let lines = try events.enumerated().map { try signed($1, record: UInt32($0)) }
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../..")
    let stored = try String(contentsOf: root.appending(path: "protocol/webhook-vectors.ndjson"), encoding: .utf8)
    #expect(lines.joined(separator: "\n") + "\n" == stored)
  }

  @Test("A secret is whsec_ and base64 of 32 to 64 bytes, padded; nothing else is one")
  func secretTexts() {
    for count in 0..<80 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: 255 - 7 * $0) }
      let secret = WebhookSecret(bytes: bytes)
      #expect((secret != nil) == (32...64).contains(count))
      #expect(WebhookSecret(Data(bytes).base64EncodedString()) == secret)
      if let secret { #expect(WebhookSecret(secret.text) == secret && secret.text.hasPrefix("whsec_")) }
    }
    let text = Data(repeating: 0xFB, count: 32).base64EncodedString()
    for wrong in ["whsec_", "", String(text.dropLast()), text + "=", text.replacing("+", with: "-"), "whsec " + text] {
      #expect(WebhookSecret(wrong) == nil)
    }
  }

  @Test("A signer needs one to four secrets, and an Ed25519 key that can sign where it has one")
  func refusedKeys() throws {
    let key = try SigningKey.secret(Array(0..<32), keyID: nil, number: 1)
    #expect(throws: KeyError.cannotSign) { try WebhookSigner(secrets: []) }
    #expect(throws: KeyError.cannotSign) { try WebhookSigner(secrets: secrets + secrets + secrets) }
    #expect(throws: KeyError.cannotSign) { try WebhookSigner(secrets: secrets, key: key) }
  }

  @Test("A secret is random bytes, which may look like a page")
  func secretLikePage() throws {
    let bytes = Array("</".utf8) + [UInt8](repeating: 0, count: 30)
    #expect(throws: KeyError.secretIsAKey(1)) { try KeySet(parsing: bytes) }
    let signer = try WebhookSigner(secrets: [#require(WebhookSecret(bytes: bytes))])
    #expect(try signer.signatures(id: "a", timestamp: Timestamp(milliseconds: 0), body: []).hasPrefix("v1,"))
  }

  @Test("An id has no full stop, and each position has its own")
  func ids() {
    let positions = [(1, 11), (11, 1), (1, 1), (111, 0)].map { JournalPosition(group: $0.0, record: $0.1) }
    let ids = positions.map { EventID(epoch: "e", position: $0) }
    #expect(Set(ids.map(\.description)).count == positions.count)
    #expect(ids.allSatisfy { !$0.description.contains(".") && EventID($0.description) == $0 })
  }

  @Test("A position makes no body")
  func states() throws {
    let coordinate = try #require(Coordinate(latitude: 52.52, longitude: 13.405))
    let location = DriverLocation(
      driverID: Identifier("D1")!, tripID: nil, coordinate: coordinate, heading: nil, speed: nil, accuracy: 5,
      confidence: .high, timestamp: Timestamp(milliseconds: 0), age: 0, after: 0)
    let position = Publication(
      channel: .fleet, number: 1, timestamp: Timestamp(milliseconds: 0), body: .driverLocation(location))
    var body = ByteBuffer()
    #expect(!WebhookBody.write(position, into: &body))
    #expect(body.array().isEmpty)
  }
}

@Suite struct RetryScheduleTests {
  @Test("5 s, 30 s, 2 min, 10 min, 30 min, 1 h, then each 2 h, a fifth more or less")
  func steps() {
    let middle = (1...9).map { RetrySchedule.delay(afterFailures: $0, retryAfterSeconds: nil, unit: 0.5) }
    #expect(middle.map { $0 / 1_000_000_000 } == [5, 30, 120, 600, 1800, 3600, 7200, 7200, 7200])
    #expect(RetrySchedule.delay(afterFailures: 1, retryAfterSeconds: nil, unit: 0) == 4_000_000_000)
    #expect(RetrySchedule.delay(afterFailures: 1, retryAfterSeconds: nil, unit: 1.0.nextDown) <= 6_000_000_000)
  }

  @Test("Retry-After makes a delay longer, up to an hour, and never shorter")
  func retryAfter() {
    func seconds(_ value: Double) -> Double {
      Double(RetrySchedule.delay(afterFailures: 1, retryAfterSeconds: value, unit: 0.5)) / 1e9
    }
    #expect(seconds(0) == 5 && seconds(-10) == 5 && seconds(60) == 60 && seconds(3601) == 3600)
    #expect(seconds(.infinity) == 3600)
  }

  @Test("A rule has 1 to 16 requests under way and a time that ends")
  func rules() {
    #expect(WebhookRule(concurrency: 0) == nil && WebhookRule(concurrency: 17) == nil)
    #expect(WebhookRule(concurrency: 16) != nil && WebhookRule() != nil)
    for time in [0, -1, .infinity, .nan] { #expect(WebhookRule(giveUpAfterSeconds: time) == nil) }
  }
}
