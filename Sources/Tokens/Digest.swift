// SHA-256 (FIPS 180-4).
import CHubOpenSSL

package enum Digest {
  /// 32 bytes.
  package static func sha256(of bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    let done = unsafe EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil)
    precondition(done == 1, "SHA-256 of bytes in memory does not fail")
    return digest
  }
}
