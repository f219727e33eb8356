// The compact form of a token (RFC 7515 §7.1), which access and refresh tokens have.
import HubBytes

/// A token's parts, decoded; nothing of it is verified.
struct CompactToken {
  let header: [UInt8]
  let payload: [UInt8]
  let signature: [UInt8]
  /// What the signature is over: the first two parts as received (RFC 7515 §5.2 step 8).
  let signed: ArraySlice<UInt8>

  init(_ token: some Collection<UInt8>) throws(TokenError) {
    guard token.count <= TokenLimits.maximumBytes else { throw .tooLong }
    let token = Array(token)
    let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64.url.decode(parts[0]), let payload = Base64.url.decode(parts[1]),
      let signature = Base64.url.decode(parts[2])
    else { throw .notCompact }  // RFC 7515 §7.1, §5.2 steps 1, 2, 7
    (self.header, self.payload, self.signature) = (header, payload, signature)
    signed = token[..<parts[1].endIndex]
  }
}
