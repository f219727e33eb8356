// Files of keys: which are read, which key a token means, and what is refused with its number.
import Foundation
import HubBytes
import HubMessages
import Testing

@testable import HubTokens

@Suite struct KeySetTests {
  private func read(_ text: String) throws(KeyError) -> KeySet { try KeySet(parsing: Array(text.utf8)) }

  @Test("a file that begins with a brace is a key or a set of keys, in order, with their names")
  func jsonWebKeys() throws {
    let set = try Example.keySet()
    #expect(set.keys.map(\.keyID) == ["hs", "rs", "es", "ed"])
    #expect(set.keys.map(\.algorithm) == [.hs256, .rs256, .es256, .edDSA])
    #expect(set.keys.map(\.isPrivate) == [true, false, false, false])
    for space in ["\n ", "\u{FEFF}", "\u{FEFF}\r\n"] {
      #expect(try read(space + Example.p256()).keys.map(\.isPrivate) == [true])
    }
  }

  @Test("a secret is one line of text, or bytes that are none")
  func lines() throws {
    let secret = String(repeating: "o", count: 32)
    for text in ["\(secret)\n\(secret)\n", "\(secret)\r\n# an old one", "\(secret)\n\n", "\(secret)\n\té"] {
      #expect(throws: KeyError.severalLines) { try read(text) }
    }
    let bytes = Array(repeating: UInt8(0x80), count: 20) + [0x0A] + Array(repeating: 0x81, count: 20)
    #expect(try KeySet(parsing: bytes).keys.count == 1)
  }

  @Test("a file of any other bytes is a secret, without the line end behind it")
  func secrets() throws {
    let text = String(repeating: "s", count: 32)
    let token = try read(text).keys[0].token(#"{"sub":"a","role":"ops"}"#)
    for spelling in [text, text + "\n", text + "\r\n"] {
      #expect(TokenVerifier(keys: try read(spelling)).refusal(of: token) == nil)
    }
    #expect(TokenVerifier(keys: try read(text + " ")).refusal(of: token) == .badSignature)
    #expect(throws: KeyError.tooShort(1)) { try read(String(repeating: "s", count: 31) + "\n") }
    #expect(throws: KeyError.empty) { try read(" \n") }
    for page in ["<html><head><title>404 Not Found</title></head></html>", "<!DOCTYPE html>\n<p>moved</p>\n<!-- x -->"]
    {
      #expect(throws: KeyError.secretIsAKey(1)) { try read(page) }
    }
  }

  /// Keys as `openssl genpkey` writes them, private and public.
  private func openSSL(_ arguments: [String]) throws -> String {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return String(decoding: text, as: UTF8.self)
  }

  @Test(
    "PEM as openssl writes it is read, private and public, and what one signs the other verifies",
    arguments: [
      (["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], Algorithm.rs256),
      (["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], .es256), (["-algorithm", "ED25519"], .edDSA),
    ])
  func pem(arguments: [String], algorithm: Algorithm) throws {
    let text = try openSSL(["genpkey"] + arguments)
    guard text.contains("-----BEGIN") else { return print("skipped: no openssl to make a key with") }
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).pem")
    try Data(text.utf8).write(to: file)
    defer { do { try FileManager.default.removeItem(at: file) } catch { Issue.record(error) } }
    let publicText = try openSSL(["pkey", "-in", file.path, "-pubout"])

    let signer = try read(text).keys[0]
    let verifier = try read("# some words before\n" + publicText)
    #expect(signer.algorithm == algorithm && signer.isPrivate)
    #expect(verifier.keys.map(\.algorithm) == [algorithm] && !verifier.keys[0].isPrivate)
    let token = try signer.token(#"{"sub":"a","role":"ops"}"#)
    #expect(TokenVerifier(keys: verifier).refusal(of: token) == nil)
    #expect(throws: KeyError.cannotSign) { try verifier.keys[0].token("{}") }
    // Several in one file: the right one is found by its algorithm, also for a token that names a key.
    let both = try read(publicText + text)
    #expect(both.keys.count == 2)
    let named = try signer.signed(header: Array(#"{"alg":"\#(algorithm.rawValue)","kid":"k"}"#.utf8), payload: [0x7B])
    #expect(TokenVerifier(keys: both).refusal(of: named) == .badClaims, "a file of PEM has no names to compare with")
    // Without its first and last line it would be a secret that everybody has.
    var blocks = [text, publicText, try openSSL(["req", "-x509", "-key", file.path, "-subj", "/CN=hub"])]
    if algorithm == .rs256 { blocks.append(try openSSL(["rsa", "-in", file.path, "-RSAPublicKey_out"])) }
    for block in blocks where block.contains("-----BEGIN") {
      let lines = block.split(separator: "\n").filter { !$0.hasPrefix("-----") }
      for separator in ["\n", ""] {
        #expect(throws: KeyError.secretIsAKey(1)) { try read(lines.joined(separator: separator)) }
      }
    }
  }

  @Test("short keys, other curves and broken blocks are refused with their number")
  func refused() throws {
    let short = try openSSL(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"])
    if short.contains("-----BEGIN") { #expect(throws: KeyError.tooShort(1)) { try read(short) } }
    let curve = try openSSL(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"])
    if curve.contains("-----BEGIN") { #expect(throws: KeyError.unsupportedKey(1)) { try read(curve) } }
    #expect(throws: KeyError.badPEM(block: 1)) {
      try read("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----")
    }
    #expect(throws: KeyError.badPEM(block: 1)) { try read("-----BEGIN PUBLIC KEY-----\nAAAA\n") }
  }

  @Test(
    "sets that are not whole are refused with the number of the key",
    arguments: [
      ("{}", .badKeySet), ("{\"keys\":1}", .badKeySet), ("{\"keys\":[]}", .empty), ("{\"keys\":[1]}", .badKey(1)),
      ("{", .badKeySet), (#"{"kty":"oct","k":"c2hvcnQ"}"#, .tooShort(1)), (#"{"kty":"oct"}"#, .badKey(1)),
      (#"{"kty":"oct","k":"c2hvcnQ="}"#, .badKey(1)), (#"{"kty":"EC","crv":"P-384"}"#, .unsupportedKey(1)),
      (#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#, .badKey(1)), (#"{"kty":"OKP","crv":"X25519"}"#, .unsupportedKey(1)),
      (#"{"kty":"RSA","n":"AQAB"}"#, .badKey(1)), (#"{"keys":[{"kty":"oct","use":"enc"}]}"#, .empty),
      (#"{"keys":[{"kty":"EC","crv":"P-384"}]}"#, .unsupportedKey(1)),
      (#"{"keys":[{"kty":"EC","crv":"P-384"},{"kty":"x"}]}"#, .empty),
    ] as [(String, KeyError)])
  func badSets(text: String, expected: KeyError) {
    #expect(throws: expected) { try read(text) }
  }

  @Test("A file has up to 64 keys, as JSON or as PEM")
  func limit() throws {
    // The seed of RFC 8032 §7.1, test 1, as PKCS #8.
    let pem = """
      -----BEGIN PRIVATE KEY-----
      MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
      -----END PRIVATE KEY-----

      """
    for count in [KeySet.maximumKeys, KeySet.maximumKeys + 1] {
      let texts = [
        "{\"keys\":[\(Array(repeating: Example.secret(), count: count).joined(separator: ","))]}",
        String(repeating: pem, count: count),
      ]
      for text in texts {
        if count == KeySet.maximumKeys {
          #expect(try read(text).keys.count == count)
        } else {
          #expect(throws: KeyError.tooManyKeys(limit: KeySet.maximumKeys)) { try read(text) }
        }
      }
    }
  }

  @Test("of several keys those of a kind that is not known are passed over (RFC 7517 §5)")
  func otherKinds() throws {
    let other = [#"{"kty":"EC","crv":"P-384","kid":"x"}"#, Example.rsaPublic(#""alg":"RS512","#)]
    let good = [Example.rsaPublic(#""kid":"a","#), Example.p256Public(#""kid":"b","#)]
    let set = try read("{\"keys\":[\(other[0]),\(good[0]),\(other[1]),\(good[1])]}")
    #expect(set.keys.map(\.keyID) == ["a", "b"])
  }

  @Test("a key whose own alg is another, two keys of one name, and a point off its curve are refused")
  func contradictions() throws {
    #expect(throws: KeyError.unsupportedKey(1)) { try read(Example.rsaPublic(#""alg":"HS256","#)) }
    #expect(throws: KeyError.unsupportedKey(1)) { try read(Example.secret(#""alg":"RS256","#)) }
    let twice = Example.p256Public(#""kid":"a","#)
    #expect(throws: KeyError.duplicateKeyID(2)) { try read("{\"keys\":[\(twice),\(twice)]}") }
    #expect(throws: KeyError.badKey(1)) { try read(Example.p256Public().replacing("f83O", with: "f83P")) }
  }

  @Test("a revocation list is ids, one a line, with comments")
  func revocations() throws {
    let list = try RevocationList(parsing: Array("# lost phones\nd1\r\n\n  jti-7  \n".utf8))
    #expect(list.count == 2)
    #expect(list.contains(subject: .init("d1")!, tokenID: nil))
    #expect(list.contains(subject: .init("x")!, tokenID: .init("jti-7")))
    #expect(!list.contains(subject: .init("x")!, tokenID: .init("jti-8")))
    let marked = try RevocationList(parsing: Array("\u{FEFF}d1\na b#c\n".utf8))
    #expect(marked.contains(subject: .init("d1")!, tokenID: nil))
    #expect(marked.contains(subject: .init("x")!, tokenID: .init("a b#c")), "an issuer may give any text as a jti")
    for comment in ["d1 # lost", "d1\t# lost", "d1 #"] {
      #expect(throws: KeyError.badLine(2)) { try RevocationList(parsing: Array("# of May\n\(comment)\n".utf8)) }
    }
    #expect(throws: KeyError.badLine(2)) {
      try RevocationList(parsing: Array(("a\n" + String(repeating: "x", count: 65)).utf8))
    }
  }
}
