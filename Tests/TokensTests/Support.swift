// Keys for tests: those of the RFCs' examples, which the whole world knows and nobody may use.
import HubMessages

@testable import HubTokens

/// 2026-11-21T00:00:00Z.
let now = Timestamp(milliseconds: 1_795_219_200_000)

func key(_ json: String) throws -> SigningKey { try KeySet(parsing: Array(json.utf8)).keys[0] }

enum Example {
  /// RFC 7515 §A.1.1, with a `kid` before it where one is given.
  static func secret(_ more: String = "") -> String {
    """
    {\(more)"kty":"oct",
    "k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}
    """
  }

  static let rsaModulus = """
    ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgN\
    MsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xs\
    mtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ
    """

  /// RFC 7515 §A.2.1, the public half.
  static func rsaPublic(_ more: String = "") -> String { #"{\#(more)"kty":"RSA","n":"\#(rsaModulus)","e":"AQAB"}"# }

  /// RFC 7515 §A.2.1.
  static func rsa(_ more: String = "") -> String {
    #"{\#(more)"kty":"RSA","n":"\#(rsaModulus)","e":"AQAB","#
      + """
      "d":"Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-7YwVol2NXOoAJe46sui395IW\
      _GO-pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M_V51gfpRLI9JYanrC4D4qAdGcopV_0ZHHzQlBj\
      udU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl_x_jTj3ccPDVZFD9pIuhLhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1\
      DhOVRuOopznQ",
      "p":"4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0Hw_Py5PJdTJNPY8cQn7ou\
      Z2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGUc",
      "q":"uQPEfgmVtjL0Uyyx88GZFF1fOunH3-7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD_YwD66t62wDmp\
      e_HlB-TnBA-njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdc",
      "dp":"BwKfV3Akq5_MFZDFZCnW-wzl-CCo83WoZvnLQwCTeDv8uzluRSnm71I3QCLdhrqE2e9YkxvuxdBfpT_PI7Yz-FOKnu1R6HsJeDCjn12Sk\
      3vmAktV2zb34MCdy7cpdTh_YVr7tss2u6vneTwrA86rZtu5Mbr1C1XsmvkxHQAdYo0",
      "dq":"h_96-mK1R_7glhsum81dZxjTnYynPbZpHziZjeeHcXYsXaaMwkOlODsWa7I9xXDoRwbKgB719rrmI2oKr6N3Do9U0ajaHF-NKJnwgjMd2\
      w9cjz3_-kyNlxAr2v4IKhGNpmM5iIgOS1VZnOZ68m6_pbLBSp3nssTdlqvd0tIiTHU",
      "qi":"IYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd-DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd_QJQ3ydy5cY7YIBi87w93IKLEd\
      fnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp_gh6A5603k2-ZQwVK0JKSHuLFkuQ3U"}
      """
  }

  private static let point = """
    "x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
    """

  /// RFC 7515 §A.3.1.
  static func p256Public(_ more: String = "") -> String { #"{\#(more)"kty":"EC","crv":"P-256",\#(point)}"# }
  static func p256(_ more: String = "") -> String {
    #"{\#(more)"kty":"EC","crv":"P-256",\#(point),"d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}"#
  }

  private static let edwards = #""kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#

  /// RFC 8037 §A.1, §A.2.
  static func ed25519Public(_ more: String = "") -> String { "{\(more)\(edwards)}" }
  static func ed25519(_ more: String = "") -> String {
    #"{\#(more)\#(edwards),"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}"#
  }

  /// A key for each algorithm, private and public, by name `hs`, `rs`, `es` and `ed`.
  static func all() throws -> [SigningKey] {
    try [secret(#""kid":"hs","#), rsa(#""kid":"rs","#), p256(#""kid":"es","#), ed25519(#""kid":"ed","#)].map(key)
  }

  /// A set of the four, public where there is a public half.
  static func keySet() throws -> KeySet {
    let keys = [
      secret(#""kid":"hs","#), rsaPublic(#""kid":"rs","alg":"RS256","use":"sig","#), p256Public(#""kid":"es","#),
      ed25519Public(#""kid":"ed","#),
    ]
    return try KeySet(parsing: Array("{\"keys\":[\(keys.joined(separator: ","))]}".utf8))
  }
}

extension SigningKey {
  /// A token of this key with any claims, `kid` and `alg` as they should be.
  func token(_ claims: String) throws -> [UInt8] {
    let kid = keyID.map { #","kid":"\#($0)""# } ?? ""
    return try signed(
      header: Array(#"{"alg":"\#(algorithm.rawValue)"\#(kid)}"#.utf8), payload: Array(claims.utf8))
  }
}

extension TokenVerifier {
  /// Why the token is refused; nil where it is not.
  func refusal(of token: [UInt8], at time: Timestamp = now) -> TokenError? {
    do throws(TokenError) {
      _ = try verify(token, now: time)
      return nil
    } catch {
      return error
    }
  }
}
