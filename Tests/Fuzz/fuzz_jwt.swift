// modules: HubBytes HubGeo HubMessages HubCore HubTokens
// libraries: crypto
// libFuzzer's way into tokens, key files and revocations: no input may crash them, and no token may pass that was not
// signed.
import HubBytes
import HubCore
import HubMessages
import HubTokens

private let secret = Array("0123456789abcdef0123456789abcdef".utf8)
private let now = Timestamp(milliseconds: 1_795_219_200_000)

private let keys: KeySet = {
  do throws(KeyError) { return try KeySet(parsing: secret) } catch { preconditionFailure("\(error)") }
}()

/// The first byte chooses: a token as it is, one made of a header and claims that are signed, a file of keys, a list, a
/// refresh token as it is, one that is signed, a file of devices' keys, the body of a revocation, the cursor of their
/// list.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTokens(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  guard size > 0 else { return 0 }
  let input = Array(UnsafeBufferPointer(start: data + 1, count: size - 1))
  switch data[0] % 9 {
  case 0: fuzzUnsigned(input)
  case 1: fuzzSigned(input)
  case 2: fuzzKeys(input)
  case 3: fuzzList(input)
  case 4: precondition(refreshToken(input) == nil, "a refresh token that nobody signed was accepted")
  case 5: fuzzSignedRefreshToken(input)
  case 6: fuzzDevices(input)
  case 7: fuzzRevocation(input)
  default: fuzzCursor(String(decoding: input, as: UTF8.self))
  }
  return 0
}

private func fuzzUnsigned(_ token: [UInt8]) {
  // 256 bits can't be guessed: what is accepted was not signed by the key.
  precondition(claims(token) == nil, "a token that nobody signed was accepted")
}

/// Claims of the fuzzer's making behind a good signature: what is read must survive being written.
private func fuzzSigned(_ payload: [UInt8]) {
  let header = Array(#"{"alg":"HS256"}"#.utf8)
  guard let token = made({ () throws(KeyError) in try keys.keys[0].signed(header: header, payload: payload) }),
    let read = claims(token)
  else { return }
  guard let again = made({ () throws(KeyError) in try keys.keys[0].token(TokenRequest(claims: read)) }) else {
    preconditionFailure("a secret signs")
  }
  precondition(claims(again) == read, "what was written means something else")
}

private func fuzzKeys(_ file: [UInt8]) {
  guard let set = made({ () throws(KeyError) in try KeySet(parsing: file) }) else { return }
  precondition((1...KeySet.maximumKeys).contains(set.keys.count))
}

private func fuzzList(_ file: [UInt8]) {
  guard let list = made({ () throws(KeyError) in try RevocationList(parsing: file) }) else { return }
  precondition(list.count <= file.count)
}

/// Claims of the fuzzer's making behind a good signature and the right `typ`; behind another `typ` they are nothing.
private func fuzzSignedRefreshToken(_ payload: [UInt8]) {
  func signed(_ type: String) -> [UInt8]? {
    let header = Array(#"{"alg":"HS256","typ":"\#(type)"}"#.utf8)
    return made { () throws(KeyError) in try keys.keys[0].signed(header: header, payload: payload) }
  }
  guard let token = signed("refresh+jwt"), let other = signed("JWT") else { preconditionFailure("a secret signs") }
  precondition(refreshToken(other) == nil, "another token was taken for a refresh token")
  guard let read = refreshToken(token) else { return }
  precondition(read.serial > 0 && read.expires > now)
  guard let again = made({ () throws(KeyError) in try read.signed(by: keys.keys[0]) }), let known = refreshToken(again)
  else { return precondition(read.expires.milliseconds - now.milliseconds < 1000, "what was written is not read") }
  precondition((known.subject, known.family, known.serial) == (read.subject, read.family, read.serial))
  precondition(known.tier == read.tier, "what was written means something else")
}

/// Keys that nobody has open nothing, and no line of the file is a key itself.
private func fuzzDevices(_ file: [UInt8]) {
  guard let devices = made({ () throws(KeyError) in try DeviceKeys(parsing: file) }) else { return }
  precondition(devices.count <= file.count)
  for line in file.split(separator: 0x0A) { precondition(devices.driver(of: line) == nil) }
}

/// What is taken for a revocation names something, and ends later.
private func fuzzRevocation(_ body: [UInt8]) {
  guard let members = JSONValue(parsing: body)?.members else { return }
  for format in TimeFormat.allCases {
    do throws(ErrorReply) {
      let revocation = try Revocation(members: members, time: format, now: now)
      precondition(!revocation.name.text.isEmpty)
      precondition(revocation.until.map { $0 > now && Timestamp.accepted.contains($0) } ?? true)
    } catch {
      precondition(error.code == .badMessage && !error.message.isEmpty)
    }
  }
}

private func fuzzCursor(_ text: String) {
  guard let cursor = ListCursor(text, of: .revocations) else { return }
  precondition(cursor.text(of: .revocations) == text && Int(exactly: cursor.number) != nil)
}

private func refreshToken(_ token: [UInt8]) -> RefreshToken? {
  do throws(TokenError) {
    return try RefreshToken(checking: token, by: keys.keys[0], now: now)
  } catch {
    precondition(!error.description.isEmpty)
    return nil
  }
}

private func claims(_ token: [UInt8]) -> Claims? {
  do throws(TokenError) {
    return try TokenVerifier(keys: keys).verify(token, now: now)
  } catch {
    precondition(!error.description.isEmpty)
    return nil
  }
}

private func made<T>(_ body: () throws(KeyError) -> T) -> T? {
  do throws(KeyError) { return try body() } catch {
    precondition(!error.description.isEmpty)
    return nil
  }
}
