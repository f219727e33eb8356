// The vectors of protocol/refused: what a hub and a client must refuse, and with what. `protocol/refused/README.md`
// says what the members mean.
import Foundation

/// One line of a file of `protocol/refused`. Which members it has depends on the file.
public struct RefusalVector: Decodable, Sendable, CustomStringConvertible {
  public var name: String
  public var role: String?
  public var id: String?
  public var token: String?
  public var time: String?
  public var form: String?
  public var tokens: Bool?
  public var given: [Step]?

  public var text: Pieces?
  public var hex: Pieces?
  public var request: String?
  public var fields: [String: String]?
  public var body: Pieces?

  public var code: String?
  public var replyTo: String?
  public var says: String?
  public var close: UInt16?
  public var status: Int?
  public var reads: String?
  public var then: String?

  /// What is sent before, and is taken.
  public struct Step: Decodable, Sendable {
    public var role: String?
    public var id: String?
    public var text: Pieces?
    public var times: Int?
    public var request: String?
    public var body: Pieces?
  }

  public var description: String { name }

  /// What is sent: the bytes of `text` or of `hex`; none where there is neither.
  public var bytes: [UInt8] { text.map { Array($0.whole.utf8) } ?? hex?.decoded ?? [] }

  /// All vectors of a file of `protocol/refused`.
  public static func all(of file: String) throws -> [RefusalVector] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appending(path: "protocol/refused/\(file)"), encoding: .utf8)
    return try text.split(separator: "\n").map {
      try JSONDecoder().decode(RefusalVector.self, from: Data($0.utf8))
    }
  }
}

/// A text that is written as it is, or in pieces of which some are repeated: a long one in a short line.
public struct Pieces: Decodable, Sendable {
  private struct Repeated: Decodable {
    var `repeat`: String
    var times: Int
  }

  /// The whole text; `#` in what is repeated is the number of the repetition, from 1.
  public let whole: String

  public init(from decoder: any Decoder) throws {
    if let text = try? decoder.singleValueContainer().decode(String.self) {
      whole = text
      return
    }
    var pieces = try decoder.unkeyedContainer()
    var text = ""
    while !pieces.isAtEnd {
      if let piece = try? pieces.decode(String.self) {
        text += piece
      } else {
        let piece = try pieces.decode(Repeated.self)
        for number in 1...piece.times { text += piece.repeat.replacing("#", with: "\(number)") }
      }
    }
    whole = text
  }

  /// The bytes that hexadecimal digits stand for.
  public var decoded: [UInt8] {
    let digits = whole.utf8.map { UInt8($0 & 0x40 == 0 ? $0 & 0xF : ($0 & 0xF) + 9) }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
